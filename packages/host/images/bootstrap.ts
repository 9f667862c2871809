// Makes the root file system with mmdebstrap and packs it, all in namespaces that end with this process.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { programPath } from '../engine/incus/programs.ts';
import type { Archive } from './archive.ts';
import { architecture, type Recipe, recipePackages, release } from './recipe.ts';
import type { BuildStages } from './stages.ts';

/** The newest time that a file of the image may bear, and the date of the image: 1 January 2025. */
export const epoch = 1_735_689_600;

/** 15 s of processor time and 428 MB; level 9 takes 44 s for 403 MB. */
const zstdLevel = 3;

/** The last of a failed build's output that its error carries. */
const tailLines = 15;

export interface Bootstrap {
  readonly recipe: Recipe;
  readonly archive: Archive;
  /** A folder for everything in between; the caller removes it. */
  readonly work: string;
  /** Keeps what was downloaded, so that a build that was cut off need not do it again. */
  readonly downloads: string;
  readonly squashfs: string;
  readonly stages: BuildStages;
  /** Behind everything else that the machine does. */
  readonly unhurried?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Killed with its parent, and in a mount and a pid namespace of its own: however a build ends, no
 * process and no mount of it stays. A slave: what a machine with shared mounts unmounts meanwhile is free.
 */
const confined =
  'setpriv --pdeathsig KILL -- unshare --mount --propagation slave --pid --fork --kill-child --mount-proc --';

const pace = ({ unhurried = false }: Bootstrap): string => (unhurried ? 'nice -n 19' : '');

export async function bootstrap(build: Bootstrap): Promise<void> {
  const [program = '', ...around] = `${pace(build)} ${confined}`.trim().split(' ');
  const args = [...around, 'mmdebstrap', ...(await mmdebstrapArguments(build))];
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C is for this process to act upon.
    detached: true,
    killSignal: 'SIGKILL',
    ...(build.signal === undefined ? {} : { signal: build.signal }),
    env: {
      ...process.env,
      PATH: programPath.join(':'),
      LC_ALL: 'C.UTF-8',
      TMPDIR: build.work,
      SOURCE_DATE_EPOCH: `${epoch}`,
      DEBIAN_FRONTEND: 'noninteractive',
    },
  });
  const ended = endOf(child);
  let rootBytes = 0;
  const tail: string[] = [];
  createInterface(child.stderr).on('line', (line) => {
    rootBytes ||= Number(/^cubicle-root-bytes (\d+)/.exec(line)?.[1] ?? 0);
    tail.push(line);
    tail.splice(0, tail.length - tailLines);
    build.stages.line(line);
  });
  let packed = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      packed += chunk.length;
      if (rootBytes > 0) build.stages.compressed(packed / rootBytes);
      done(null, chunk);
    },
  });
  const [code, problem] = await Promise.all([
    ended,
    squash(build, (input) => pipeline(child.stdout, counted, input)),
  ]);
  build.signal?.throwIfAborted();
  if (code !== 0) throw new Error(`mmdebstrap ended with ${code}: ${problem}\n${tail.join('\n')}`);
  if (problem !== '') throw new Error(problem);
}

/** Its pipes are closed only when nothing of its namespace runs any more. */
function endOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    // A program that cannot start or is aborted: `close` follows.
    child.on('error', () => {});
    child.once('close', resolve);
  });
}

/** Returns what went wrong, if anything did. */
async function squash(
  build: Bootstrap,
  feed: (input: NodeJS.WritableStream) => Promise<void>,
): Promise<string> {
  const packing = `tar2sqfs --quiet --compressor zstd --comp-extra level=${zstdLevel} --block-size 262144`;
  const [program = '', ...options] = `${pace(build)} ${packing}`.trim().split(' ');
  const child = spawn(program, [...options, build.squashfs], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const complaints: string[] = [];
  createInterface(child.stderr).on('line', (line) => complaints.push(line));
  const ended = endOf(child);
  const failure = await feed(child.stdin).then(() => '', String);
  const code = await ended;
  if (code === 0 && failure === '') return '';
  return `tar2sqfs ended with ${code}: ${complaints.join('\n') || failure}`;
}

async function mmdebstrapArguments(build: Bootstrap): Promise<string[]> {
  const { archive, work, downloads, recipe } = build;
  await mkdir(join(downloads, 'partial'), { recursive: true });
  const sources = join(work, 'debian.sources');
  const aptSettings = join(work, 'apt.conf');
  await writeFile(sources, archive.sources);
  await writeFile(aptSettings, archive.aptSettings);
  const packages = await recipePackages(recipe.folder);
  return [
    '--verbose',
    '--mode=root',
    '--format=tar',
    `--architectures=${architecture()}`,
    `--aptopt=${aptSettings}`,
    '--skip=essential/unlink',
    ...(recipe.parent === undefined
      ? wholeSystem(recipe.folder, packages)
      : addition(recipe.parent.rootfs, packages)),
    ...hooks('setup', [
      `mkdir -p "$1/var/cache/apt/archives"`,
      `mount --bind ${quoted(downloads)} "$1/var/cache/apt/archives"`,
    ]),
    ...hooks('customize', [
      `umount "$1/var/cache/apt/archives"`,
      `cp -R --no-preserve=all ${quoted(join(recipe.folder, 'overlay'))}/. "$1/"`,
      ...archive.keys.map(
        (key) =>
          `[ -e "$1"${quoted(key)} ] || install -D --mode=0644 ${quoted(key)} "$1"${quoted(key)}`,
      ),
      `chroot "$1" sh < ${quoted(join(recipe.folder, 'customise'))}`,
      `printf %s ${quoted(archive.keptSettings)} > "$1/etc/apt/apt.conf.d/90archive"`,
      `echo "cubicle-root-bytes $(du --summarize --bytes --one-file-system "$1" | cut -f 1)" >&2`,
    ]),
    release,
    '-',
    sources,
  ];
}

function wholeSystem(folder: string, packages: readonly string[]): string[] {
  return [
    '--variant=minbase',
    `--include=${packages.join(',')}`,
    `--dpkgopt=${join(folder, 'dpkg.cfg')}`,
  ];
}

/** Unpacks the image before, and runs apt from outside of it, as mmdebstrap itself does. */
function addition(rootfs: string, packages: readonly string[]): string[] {
  const unpack = `tar -C "$1" -x --xattrs --xattrs-include='*' --exclude='./dev/*' --exclude='dev/*'`;
  const chroot = `-o Dir::Bin::dpkg=env -o DPkg::Options::=--unset=TMPDIR -o DPkg::Options::=dpkg -o DPkg::Chroot-Directory="$1"`;
  return [
    '--variant=custom',
    ...hooks('setup', [`sqfs2tar ${quoted(rootfs)} | ${unpack}`]),
    ...hooks('essential', [
      `echo 'I: installing remaining packages' >&2`,
      `APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get ${chroot} --yes install ${packages.join(' ')} >&2`,
    ]),
  ];
}

const hooks = (kind: string, commands: readonly string[]): string[] =>
  commands.map((command) => `--${kind}-hook=${command}`);

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
