// Removes what a build that was killed left in its folder, mounts first.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * A build's mounts end with its namespace. Should any be visible here all the same, such as a bound
 * /dev, they go first, and nothing on another file system is ever deleted.
 */
export async function removeBuildFolder(folder: string): Promise<void> {
  for (const mount of (await mountsUnder(folder)).toReversed())
    await run('umount', ['--lazy', mount]);
  await run('rm', ['--recursive', '--force', '--one-file-system', '--', folder]);
}

/** In the order they were made. */
async function mountsUnder(folder: string): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const points = table.split('\n').map((line) => unescaped(line.split(' ')[4] ?? ''));
  return points.filter((point) => point === folder || point.startsWith(`${folder}/`));
}

/** The kernel writes blanks in paths as \040 and the like. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\(\d{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
