// The metadata that Incus wants beside a root file system.

import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { epoch } from './bootstrap.ts';
import { architecture, release } from './recipe.ts';

const run = promisify(execFile);

const kernelNames: Record<string, string> = { amd64: 'x86_64', arm64: 'aarch64' };

/** The same bytes for the same recipe. Makes `metadata.tar` in the folder. */
export async function writeMetadata(folder: string, name: string, digest: string): Promise<void> {
  const text = [
    `architecture: ${kernelNames[architecture()]}`,
    `creation_date: ${epoch}`,
    'properties:',
    `  name: ${name}`,
    '  os: Debian',
    `  release: ${release}`,
    '  description: The desktop of a Cubicle computer',
    `  recipe: ${digest}`,
    '',
  ].join('\n');
  const file = 'metadata.yaml';
  await writeFile(join(folder, file), text);
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=0644', `--mtime=@${epoch}`];
  await run('tar', [...owner, '-C', folder, '-cf', join(folder, 'metadata.tar'), file]);
  await rm(join(folder, file));
}
