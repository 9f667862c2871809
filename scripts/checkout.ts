// Where the checkout is, and how a tool of it is run.

import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

const binaries = join(root, 'node_modules', '.bin');

/** Runs a tool with its output shown; true when it ended well. */
export function runTool(tool: string, args: readonly string[]): boolean {
  const { status } = spawnSync(join(binaries, tool), args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${binaries}${delimiter}${process.env['PATH'] ?? ''}` },
  });
  return status === 0;
}
