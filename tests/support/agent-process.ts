// The shipped agent as a process of this machine, with every place it uses in a folder of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleAgent } from '../../packages/guest/bundle.ts';
import { signal } from './process.ts';
import { until } from './until.ts';

const bundle = join(tmpdir(), `cubicle-agent-${process.pid}.mjs`);
let bundled: Promise<void> | undefined;

async function writeBundle(): Promise<void> {
  writeFileSync(bundle, await bundleAgent());
  process.on('exit', () => rmSync(bundle, { force: true }));
}

/** `socket` is the host's, which the agent calls. */
export async function spawnAgent(
  folder: string,
  socket: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  await (bundled ??= writeBundle());
  for (const name of ['run', 'state', 'root', 'home']) {
    await mkdir(join(folder, name), { recursive: true });
  }
  return spawn(process.execPath, [bundle], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      PATH: process.env['PATH'] ?? '',
      // The profile of whoever runs the tests is none of their business.
      HOME: join(folder, 'root'),
      CUBICLE_LINK: socket,
      CUBICLE_RUN: join(folder, 'run'),
      CUBICLE_EXEC: join(folder, 'exec'),
      CUBICLE_SECRETS: join(folder, 'secrets'),
      CUBICLE_ETC: join(folder, 'etc'),
      // Nobody's display: whoever runs the tests keeps their own.
      CUBICLE_DISPLAY: join(folder, 'display'),
      CUBICLE_STATE: join(folder, 'state'),
      CUBICLE_HOME: join(folder, 'home'),
      ...settings,
    },
  });
}

export async function endAgent(agent: ChildProcess, by: NodeJS.Signals): Promise<void> {
  if (agent.exitCode !== null || agent.signalCode !== null) return;
  const gone = once(agent, 'exit');
  agent.kill(by);
  await gone;
}

/** Ends what commands left running. Shells that wait start a program now and then, and it ends by itself. */
export async function endCommands(folder: string): Promise<void> {
  await until('every process is gone', async () => {
    const left = await commandsOf(folder);
    for (const pid of left) signal(pid, 'SIGKILL');
    return left.length === 0;
  });
}

/** Commands do not inherit the agent's environment, but name the folder somewhere in theirs. */
async function commandsOf(folder: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || +name === process.pid) continue;
    try {
      const about = await Promise.all(
        ['environ', 'cmdline'].map((file) => readFile(`/proc/${name}/${file}`, 'latin1')),
      );
      if (about.some((text) => text.includes(folder))) found.push(Number(name));
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}
