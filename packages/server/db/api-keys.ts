// API keys in SQL: the holder's own, within the scope of the calling key.

import { only, type Runner, sql } from './database.ts';
import type { Scope } from './scope.ts';

export interface ApiKeyRow {
  id: string;
  name: string | null;
  prefix: string;
  created_at: Date;
  last_used_at: Date | null;
  workspace_id: string | null;
  workspace_name: string | null;
  manage_keys: boolean;
  minted_by_key_id: string | null;
}

export interface Holder extends Scope {
  readonly userId: string;
}

const columns = `
  k.id, k.name, k.prefix, k.created_at, used.used_at AS last_used_at, k.workspace_id,
  w.name AS workspace_name, k.manage_keys, k.minted_by_key_id`;
const joined = `
  api_keys k
  LEFT JOIN api_key_uses used ON used.key_id = k.id
  LEFT JOIN workspaces w ON w.id = k.workspace_id`;
const held = 'k.account_id = $1 AND ($2::text IS NULL OR k.workspace_id = $2) AND k.user_id = $3';

const list = sql(`SELECT ${columns} FROM ${joined} WHERE ${held} ORDER BY k.seq DESC`);

export async function listApiKeys(db: Runner, holder: Holder): Promise<ApiKeyRow[]> {
  return db.run(list, [holder.accountId, holder.workspaceId, holder.userId]);
}

const find = sql(`SELECT ${columns} FROM ${joined} WHERE ${held} AND k.id = $4`);

export async function findApiKey(
  db: Runner,
  holder: Holder,
  id: string,
): Promise<ApiKeyRow | undefined> {
  const values = [holder.accountId, holder.workspaceId, holder.userId, id];
  return (await db.run<ApiKeyRow>(find, values))[0];
}

const count = sql('SELECT count(*) AS count FROM api_keys WHERE account_id = $1 AND user_id = $2');

export async function countApiKeys(tx: Runner, holder: Holder): Promise<number> {
  return only(await tx.run<{ count: number }>(count, [holder.accountId, holder.userId])).count;
}

export interface NewApiKey {
  id: string;
  hash: string;
  prefix: string;
  name: string | null;
  accountId: string;
  userId: string;
  workspaceId: string | null;
  manageKeys: boolean;
  mintedByKeyId: string | null;
}

const insert = sql(`
  WITH k AS (
    INSERT INTO api_keys
      (id, hash, prefix, name, account_id, user_id, workspace_id, manage_keys, minted_by_key_id)
    VALUES ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8, $9)
    RETURNING *
  )
  SELECT k.id, k.name, k.prefix, k.created_at, NULL::timestamptz AS last_used_at, k.workspace_id,
    w.name AS workspace_name, k.manage_keys, k.minted_by_key_id
  FROM k LEFT JOIN workspaces w ON w.id = k.workspace_id`);

/** Violates `api_keys_workspace` when the account has no such workspace. */
export async function insertApiKey(tx: Runner, key: NewApiKey): Promise<ApiKeyRow> {
  const values = [
    key.id,
    key.hash,
    key.prefix,
    key.name,
    key.accountId,
    key.userId,
    key.workspaceId,
    key.manageKeys,
    key.mintedByKeyId,
  ];
  return only(await tx.run<ApiKeyRow>(insert, values));
}

// A key goes and its evidence comes in one statement (Part 5 rule 6).
const revoking = (which: string) =>
  sql(`
    WITH gone AS (DELETE FROM api_keys k WHERE ${which} RETURNING k.id, k.hash),
    kept AS (INSERT INTO revoked_keys (hash) SELECT hash FROM gone ON CONFLICT DO NOTHING)
    SELECT id FROM gone`);

const revokeHeld = revoking(`${held} AND k.id = $4`);
const revokeConfined = revoking('k.account_id = $1 AND k.workspace_id = $2');
const revokeAny = revoking('k.id = $1');

export async function revokeApiKey(tx: Runner, holder: Holder, id: string): Promise<boolean> {
  const values = [holder.accountId, holder.workspaceId, holder.userId, id];
  return (await tx.run(revokeHeld, values)).length > 0;
}

/** Every key confined to a workspace, whoever holds it; answers how many. */
export async function revokeConfinedKeys(
  tx: Runner,
  accountId: string,
  workspaceId: string,
): Promise<string[]> {
  return (await tx.run<{ id: string }>(revokeConfined, [accountId, workspaceId])).map(
    ({ id }) => id,
  );
}

/** For the operator: any key by its id. */
export async function revokeKeyById(tx: Runner, id: string): Promise<boolean> {
  return (await tx.run(revokeAny, [id])).length > 0;
}

const noteUses = sql(`
  INSERT INTO api_key_uses (key_id, used_at)
  SELECT used.key_id, used.at FROM unnest($1::text[], $2::timestamptz[]) AS used(key_id, at)
  WHERE EXISTS (SELECT FROM api_keys k WHERE k.id = used.key_id FOR KEY SHARE)
  ORDER BY used.key_id
  ON CONFLICT (key_id) DO UPDATE SET used_at = greatest(api_key_uses.used_at, excluded.used_at)`);

export async function noteKeyUses(db: Runner, uses: ReadonlyMap<string, Date>): Promise<void> {
  await db.run(noteUses, [[...uses.keys()], [...uses.values()]]);
}

const trimEvidence = sql(`
  DELETE FROM revoked_keys
  WHERE revoked_at <= now() - make_interval(days => $2)
    OR seq <= (SELECT seq FROM revoked_keys ORDER BY seq DESC OFFSET $1 LIMIT 1)`);

/** Keeps the newest `most` hashes of at most `days` days. */
export async function trimRevocationEvidence(
  db: Runner,
  most: number,
  days: number,
): Promise<void> {
  await db.run(trimEvidence, [most, days]);
}
