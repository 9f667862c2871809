// Secrets in SQL. A scope is one workspace of an account, or the account itself: exactly that, never both.

import { only, type Runner, sql } from './database.ts';

/** Where a secret lies: null is the account itself. */
export interface SecretScope {
  readonly accountId: string;
  readonly workspaceId: string | null;
}

export interface SecretRow {
  id: string;
  name: string;
  workspace_id: string | null;
  revision_id: string;
  created_at: Date;
  updated_at: Date;
  last_used_at: Date | null;
}

const columns = 'id, name, workspace_id, revision_id, created_at, updated_at, last_used_at';
const within = `account_id = $1 AND workspace_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL`;
// One whose workspace was deleted is reached by nobody (Part 4, Workspaces 8).
const reached = `${within} AND id = $3
  AND ($2::text IS NULL OR EXISTS (SELECT FROM workspaces w WHERE w.id = $2 AND w.account_id = $1))`;

const list = sql(`SELECT ${columns} FROM secrets WHERE ${within} ORDER BY seq`);

export async function listSecrets(db: Runner, scope: SecretScope): Promise<SecretRow[]> {
  return db.run(list, [scope.accountId, scope.workspaceId]);
}

const find = sql(`SELECT ${columns} FROM secrets WHERE ${reached}`);

export async function findSecret(
  db: Runner,
  scope: SecretScope,
  id: string,
): Promise<SecretRow | undefined> {
  return (await db.run<SecretRow>(find, [scope.accountId, scope.workspaceId, id]))[0];
}

export interface SealedSecretRow {
  id: string;
  revision_id: string;
  sealed: Buffer;
}

const sealedOf = sql(`
  SELECT id, revision_id, sealed FROM secrets
  WHERE account_id = $1 AND workspace_id IS NULL AND deleted_at IS NULL AND id = ANY($2)`);

/** Of these, the account's own, as they are at this moment. */
export async function sealedSecrets(
  db: Runner,
  accountId: string,
  ids: readonly string[],
): Promise<SealedSecretRow[]> {
  return db.run(sealedOf, [accountId, ids]);
}

const use = sql('UPDATE secrets SET last_used_at = clock_timestamp() WHERE id = ANY($1)');

/** They were delivered just now. */
export async function noteSecretUse(db: Runner, ids: readonly string[]): Promise<void> {
  await db.run(use, [ids]);
}

const taken = sql(`
  SELECT FROM secrets WHERE ${within} AND lower(name COLLATE "C") = lower($3 COLLATE "C")`);

export async function isSecretNameTaken(
  tx: Runner,
  scope: SecretScope,
  name: string,
): Promise<boolean> {
  return (await tx.run(taken, [scope.accountId, scope.workspaceId, name])).length > 0;
}

const count = sql(`
  SELECT count(*) AS ever, count(*) FILTER (WHERE deleted_at IS NULL) AS active
  FROM secrets WHERE account_id = $1`);

export async function countSecrets(
  tx: Runner,
  accountId: string,
): Promise<{ ever: number; active: number }> {
  return only(await tx.run<{ ever: number; active: number }>(count, [accountId]));
}

const countIn = sql(`SELECT count(*) AS count FROM secrets WHERE ${within}`);

export async function countSecretsIn(
  tx: Runner,
  accountId: string,
  workspaceId: string,
): Promise<number> {
  return only(await tx.run<{ count: number }>(countIn, [accountId, workspaceId])).count;
}

const insert = sql(`
  INSERT INTO secrets (account_id, workspace_id, id, name, revision_id, sealed)
  VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${columns}`);

export async function insertSecret(
  tx: Runner,
  scope: SecretScope,
  secret: { id: string; name: string; revisionId: string; sealed: Buffer },
): Promise<SecretRow> {
  const { id, name, revisionId, sealed } = secret;
  const values = [scope.accountId, scope.workspaceId, id, name, revisionId, sealed];
  return only(await tx.run<SecretRow>(insert, values));
}

const replace = sql(`
  UPDATE secrets SET revision_id = $2, sealed = $3, updated_at = clock_timestamp()
  WHERE id = $1 RETURNING ${columns}`);

export async function replaceSecret(
  tx: Runner,
  id: string,
  revisionId: string,
  sealed: Buffer,
): Promise<SecretRow> {
  return only(await tx.run<SecretRow>(replace, [id, revisionId, sealed]));
}

const erase = sql(`
  UPDATE secrets SET name = NULL, sealed = NULL, deleted_at = clock_timestamp() WHERE id = $1`);

export async function eraseSecret(tx: Runner, id: string): Promise<void> {
  await tx.run(erase, [id]);
}
