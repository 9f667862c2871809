// A database of its own for a test file: a copy of the migrated template, dropped at the end.

import { randomBytes } from 'node:crypto';
import pg from 'pg';

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

export async function makeDatabase(): Promise<TestDatabase> {
  const server = process.env['CUBICLE_TEST_POSTGRES'];
  if (server === undefined)
    throw new Error('run the tests with `npm test` or `node scripts/test.ts`');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await onServer(server, `CREATE DATABASE ${name} TEMPLATE cubicle_template`);
  // The address names a socket folder and no host, which URL does not take.
  return {
    url: server.replace('/cubicle?', `/${name}?`),
    drop: () => onServer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    // Copying a template waits until nobody is connected to it.
    await client.query(statement);
  } finally {
    await client.end();
  }
}
