/** Runs apt-get without letting Debian start a service, and tells how far it is. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { programPath } from './programs.ts';

/**
 * Debian starts a service as soon as it is installed unless policy-rc.d says no. A shell of its own
 * puts one there and takes it away, so that it goes even when we are killed in the middle.
 */
const withoutServices = `
policy=/usr/sbin/policy-rc.d
mark='# put here by Cubicle for one installation'
if grep -qsF "$mark" "$policy"; then rm -f "$policy"; fi
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\n%s\\nexit 101\\n' "$mark" > "$policy"
  chmod 755 "$policy"
fi
apt-get "$@"
`;

/** Somebody else's apt may hold the locks: dpkg's it waits for by itself, that of the lists not. */
const lockWaitSeconds = 300;
const listsTries = 60;
const listsPauseMs = 2_000;
/** How often a person hears how far it is. */
const wordsMs = 2_000;

export async function apt(args: readonly string[], say: (line: string) => void): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { code, errors } = await aptOnce(args, say);
    if (code === 0) return;
    const locked = errors.some((line) => line.includes('Could not get lock'));
    if (!locked || tries >= listsTries) {
      throw new Error(errors.at(-1) ?? `apt-get ${args[0]} ended with ${code}`);
    }
    if (tries === 1) say('Waiting for another apt to finish');
    await pause(listsPauseMs);
  }
}

async function aptOnce(
  args: readonly string[],
  say: (line: string) => void,
): Promise<{ code: number | null; errors: string[] }> {
  const output = await namelessFile();
  const options = [`-oDPkg::Lock::Timeout=${lockWaitSeconds}`, '-oDpkg::Use-Pty=0', '-q'];
  const child = spawn('sh', ['-c', withoutServices, 'sh', ...options, ...args], {
    // A file and no pipe: a dpkg whose reader is gone would end half-way.
    stdio: ['ignore', output.fd, output.fd],
    detached: true,
    env: {
      PATH: programPath.join(':'),
      LC_ALL: 'C.UTF-8',
      DEBIAN_FRONTEND: 'noninteractive',
      // Init scripts of the older kind are then not started either.
      RUNLEVEL: '1',
      // A proxy of the person's is theirs to give.
      ...Object.fromEntries(
        Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name)),
      ),
    },
  });
  const words = setInterval(() => void lastStep(output).then((line) => line && say(line)), wordsMs);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    const errors = (await textOf(output)).split('\n').filter((line) => /^[EW]: /.test(line));
    return { code, errors };
  } finally {
    clearInterval(words);
    await output.close();
  }
}

async function lastStep(output: FileHandle): Promise<string | undefined> {
  const lines = (await textOf(output).catch(() => '')).split('\n');
  return lines.findLast((line) => /^(Get:|Unpacking|Setting up)/.test(line));
}

async function textOf(output: FileHandle): Promise<string> {
  const { size } = await output.stat();
  const { buffer, bytesRead } = await output.read(Buffer.alloc(size), 0, size, 0);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Gone with its last user, however that one ends. */
async function namelessFile(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-apt-'));
  const file = await open(join(folder, 'output'), 'a+');
  await rm(folder, { recursive: true });
  return file;
}
