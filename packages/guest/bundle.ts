// Makes the agent one file that needs nothing but Node: what the host puts into every guest.

import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The text of `agent.mjs`. */
export async function bundleAgent(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('main.ts', import.meta.url))],
    write: false,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    loader: { '.py': 'text' },
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0]?.text as string;
}
