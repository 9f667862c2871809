// Numbered, forward-only migrations. Several processes may start at once: one migrates, the others wait.

import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import type { ConnectionOptions } from './database.ts';

const folder = new URL('./migrations/', import.meta.url);
const lockKey = 4_242_001;

export async function migrate(
  connection: ConnectionOptions,
  say: (line: string) => void = () => {},
): Promise<void> {
  const client = await connected(connection);
  try {
    await refuseOldServer(client);
    await client.query('SELECT pg_advisory_lock($1)', [lockKey]);
    await client.query(`CREATE TABLE IF NOT EXISTS schema_migrations (
      name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`);
    const done = await client.query<{ name: string }>('SELECT name FROM schema_migrations');
    const applied = new Set(done.rows.map(({ name }) => name));
    for (const name of await migrationNames()) {
      if (applied.has(name)) continue;
      say(`Migrating the database: ${name}`);
      await apply(client, name);
    }
  } finally {
    await client.end();
  }
}

async function connected(connection: ConnectionOptions): Promise<pg.Client> {
  try {
    const client = new pg.Client({ ...connection, application_name: 'cubicle migrations' });
    await client.connect();
    return client;
  } catch (cause) {
    throw new Error('The database cannot be reached; check DATABASE_URL', { cause });
  }
}

async function migrationNames(): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted();
}

async function apply(client: pg.Client, name: string): Promise<void> {
  const text = await readFile(new URL(name, folder), 'utf8');
  await client.query('BEGIN');
  try {
    await client.query(text);
    await client.query('INSERT INTO schema_migrations (name) VALUES ($1)', [name]);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw new Error(`the migration ${name} failed`, { cause: error });
  }
}

async function refuseOldServer(client: pg.Client): Promise<void> {
  const answer = await client.query<{ version: number }>(
    "SELECT current_setting('server_version_num')::int AS version",
  );
  if ((answer.rows[0]?.version ?? 0) < 150_000) {
    throw new Error('DATABASE_URL must name a PostgreSQL of version 15 or later.');
  }
}
