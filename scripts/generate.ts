// `npm run generate`: writes what is made from the source, so that a change of it shows in review.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openapiDocument } from '../packages/contract/openapi.ts';
import { migrate } from '../packages/server/db/migrate.ts';
import { dumpSchema } from '../packages/server/db/schema.ts';
import { openEmbeddedPostgres } from '../packages/server/postgres/embedded.ts';
import { root } from './checkout.ts';
import { conformancePage } from './conformance.ts';
import { errorsPage } from './errors-page.ts';

const makers: Record<string, () => string | Promise<string>> = {
  'docs/openapi.json': () => `${JSON.stringify(openapiDocument(), null, 2)}\n`,
  'docs/errors.md': errorsPage,
  'docs/conformance.md': conformancePage,
  'packages/server/db/schema.sql': schemaText,
};

export async function staleFiles(): Promise<string[]> {
  const stale: string[] = [];
  for (const [file, make] of Object.entries(makers)) {
    const kept = await readFile(join(root, file), 'utf8').catch(() => undefined);
    if (kept !== (await make())) stale.push(file);
  }
  return stale;
}

async function schemaText(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-schema-'));
  const server = await openEmbeddedPostgres({ dataDir, role: 'command', say: () => {} });
  try {
    await migrate(server.connection);
    const client = new pg.Client(server.connection);
    await client.connect();
    try {
      return await dumpSchema(client);
    } finally {
      await client.end();
    }
  } finally {
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  for (const [file, make] of Object.entries(makers)) {
    await writeFile(join(root, file), await make());
    console.log(`wrote ${file}`);
  }
}
