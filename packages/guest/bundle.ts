// Makes the agent one file that needs nothing but Node: what the host puts into every guest.

import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

/** The script that runs in pages is a text to the agent. */
const pageScript: Plugin = {
  name: 'page script',
  setup(building) {
    building.onLoad({ filter: /browser\/page\/main\.ts$/ }, async ({ path }) => ({
      contents: await bundlePageScript(path),
      loader: 'text',
    }));
  },
};

/** What it exports is `page`. */
async function bundlePageScript(path: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path],
    write: false,
    bundle: true,
    minify: true,
    format: 'iife',
    globalName: 'page',
    target: 'es2024',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0]?.text as string;
}

const requireForModules =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

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
    plugins: [pageScript],
    // Of a package that is written for `require`.
    banner: { js: requireForModules },
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0]?.text as string;
}
