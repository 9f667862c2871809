// Fills the database with accounts, people, keys and workspaces, one of each in a row, by plain SQL.

import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import type { ConnectionOptions } from '../../packages/server/db/database.ts';

/** A key and a workspace it may read. */
export interface Target {
  key: string;
  workspace: string;
}

const perAccount = 10;

/** Adds rows `from` to `to`; answers `wanted` targets spread evenly over them. */
export async function fill(
  connection: ConnectionOptions,
  from: number,
  to: number,
  wanted: number,
): Promise<Target[]> {
  const client = new pg.Client(connection);
  await client.connect();
  const rows = Array.from({ length: to - from }, (_, i) => {
    const n = from + i;
    const hex = n.toString(16).padStart(12, '0');
    const raw = `com_${randomBytes(24).toString('hex')}`;
    return {
      account: `acc-${Math.floor(n / perAccount)
        .toString(16)
        .padStart(12, '0')}`,
      user: `usr-${hex.padStart(16, '0')}`,
      workspace: `wsp-${hex}`,
      key: `key-${hex}`,
      hash: createHash('sha256').update(raw).digest('hex'),
      raw,
    };
  });
  const column = (name: keyof (typeof rows)[number]) => rows.map((row) => row[name]);
  await client.query('BEGIN');
  await client.query(
    `INSERT INTO accounts (id, name, plan_id)
     SELECT DISTINCT id, id, 'swarm' FROM unnest($1::text[]) AS id`,
    [column('account')],
  );
  await client.query(
    `INSERT INTO users (id, email, verified) SELECT id, id || '@example.com', true FROM unnest($1::text[]) AS id`,
    [column('user')],
  );
  await client.query(
    `INSERT INTO members (account_id, user_id, role)
     SELECT * FROM unnest($1::text[], $2::text[]) AS m(account_id, user_id), (VALUES ('member')) AS r`,
    [column('account'), column('user')],
  );
  await client.query(
    `INSERT INTO workspaces (id, account_id, name)
     SELECT id, account_id, id FROM unnest($1::text[], $2::text[]) AS w(id, account_id)`,
    [column('workspace'), column('account')],
  );
  await client.query(
    `INSERT INTO api_keys (id, hash, prefix, account_id, user_id)
     SELECT id, decode(hash, 'hex'), 'com_…', account_id, user_id
     FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k(id, hash, account_id, user_id)`,
    [column('key'), column('hash'), column('account'), column('user')],
  );
  await client.query('COMMIT');
  await client.query('ANALYZE');
  await client.end();
  const step = rows.length / wanted;
  return Array.from({ length: wanted }, (_, i) => {
    const row = rows[Math.floor(i * step)] as (typeof rows)[number];
    return { key: row.raw, workspace: row.workspace };
  });
}
