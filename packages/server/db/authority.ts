// Who a key acts for: read at the door, locked and read again inside every change.

import type { Role } from '@cubicle/contract/route.ts';
import { type Database, type Runner, sql } from './database.ts';
import { gathered } from './gather.ts';

export interface AuthorityRow {
  hash: Buffer;
  key_id: string;
  workspace_id: string | null;
  manage_keys: boolean;
  account_id: string;
  account_suspended: boolean;
  plan_id: string;
  rate_units: number;
  user_id: string;
  user_suspended: boolean;
  verified: boolean;
  /** Null when the membership is gone. */
  role: Role | null;
  seat_suspended: boolean | null;
}

const columns = `
  k.hash, k.id AS key_id, k.workspace_id, k.manage_keys,
  a.id AS account_id, a.suspended AS account_suspended, a.plan_id, p.rate_units,
  u.id AS user_id, u.suspended AS user_suspended, u.verified,
  m.role, m.seat_suspended`;

/** A key whose holder was removed is found without a role. */
const standing = `
  FROM api_keys k
  JOIN accounts a ON a.id = k.account_id
  JOIN plans p ON p.id = a.plan_id
  JOIN users u ON u.id = k.user_id
  LEFT JOIN members m ON m.account_id = k.account_id AND m.user_id = k.user_id`;

// One index look-up per key, whatever the planner believes about the size of the tables.
const byHash = sql(`
  SELECT found.*
  FROM unnest($1::bytea[]) AS asked(hash),
  LATERAL (
    SELECT ${columns}
    ${standing}
    WHERE k.hash = asked.hash
    LIMIT 1
  ) AS found`);

const evidence = sql(`
  SELECT hash FROM revoked_keys
  WHERE hash = ANY($1::bytea[]) AND revoked_at > now() - make_interval(days => $2)`);

export type KeyLookup = AuthorityRow | 'revoked' | 'unknown';

/** Looks keys up by the hex of their hash. */
export function keyLookup(
  database: Database,
  evidenceDays: number,
): (hash: string) => Promise<KeyLookup> {
  return gathered(async (hashes: string[]) => {
    const asked = hashes.map((hash) => Buffer.from(hash, 'hex'));
    const rows = await database.run<AuthorityRow>(byHash, [asked]);
    const found = new Map<string, KeyLookup>(rows.map((row) => [row.hash.toString('hex'), row]));
    if (found.size < asked.length) {
      for (const row of await database.run<{ hash: Buffer }>(evidence, [asked, evidenceDays])) {
        const hash = row.hash.toString('hex');
        if (!found.has(hash)) found.set(hash, 'revoked');
      }
    }
    return hashes.map((hash) => found.get(hash) ?? 'unknown');
  });
}

// One change of an account's people, keys or workspaces at a time: the account's row is the mutex,
// always locked first. The others are held so that nobody takes the authority away before commit.
const lockAccount = sql('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE');
const lockAuthority = sql(`
  SELECT ${columns}
  FROM api_keys k
  JOIN accounts a ON a.id = k.account_id
  JOIN plans p ON p.id = a.plan_id
  JOIN users u ON u.id = k.user_id
  JOIN members m ON m.account_id = k.account_id AND m.user_id = k.user_id
  WHERE k.id = $1
  FOR SHARE OF u, m, k`);
const read = sql(`
  SELECT ${columns}
  ${standing}
  WHERE k.id = $1`);

/** As it stands now; undefined when the key is gone. */
export async function authorityOfKey(db: Runner, keyId: string): Promise<AuthorityRow | undefined> {
  return (await db.run<AuthorityRow>(read, [keyId]))[0];
}

const keyStands = sql('SELECT FROM api_keys WHERE id = $1');

/** The authority as it stands inside this transaction, or what is gone of it. */
export async function lockAuthorityOf(
  tx: Runner,
  accountId: string,
  keyId: string,
): Promise<AuthorityRow | 'key gone' | 'membership gone'> {
  await tx.run(lockAccount, [accountId]);
  const [row] = await tx.run<AuthorityRow>(lockAuthority, [keyId]);
  if (row !== undefined) return row;
  return (await tx.run(keyStands, [keyId])).length > 0 ? 'membership gone' : 'key gone';
}

export async function lockAccountRow(tx: Runner, accountId: string): Promise<boolean> {
  return (await tx.run(lockAccount, [accountId])).length > 0;
}
