// Secrets bound to computers in SQL. Whoever locks both takes secrets before lists: a value that is replaced
// reaches the lists it is in the same way.

import type { AppliedSecret } from './computer-secrets.ts';
import { only, type Runner, sql } from './database.ts';

const resolve = sql(`
  SELECT id, revision_id FROM secrets
  WHERE account_id = $1 AND (workspace_id IS NULL OR workspace_id = $2) AND id = ANY($3)
    AND deleted_at IS NULL`);

/** Those that a computer of this account and workspace may have, by their id, with their revision. */
export async function resolveSecrets(
  tx: Runner,
  owner: { account_id: string; workspace_id: string | null },
  ids: readonly string[],
): Promise<Map<string, string>> {
  const values = [owner.account_id, owner.workspace_id, ids];
  const rows = await tx.run<{ id: string; revision_id: string }>(resolve, values);
  return new Map(rows.map(({ id, revision_id }) => [id, revision_id]));
}

const count = sql(`
  INSERT INTO computer_secrets AS s (computer_id, version) VALUES ($1, 1)
  ON CONFLICT (computer_id) DO UPDATE SET version = s.version + 1`);
const clear = sql('DELETE FROM secret_bindings WHERE computer_id = $1');
const insert = sql(`
  INSERT INTO secret_bindings (computer_id, position, secret_id, revision_id, env, file)
  SELECT $1, n, secret_id, revision_id, env, file
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
    WITH ORDINALITY AS t (secret_id, revision_id, env, file, n)`);

/** Instead of what was bound before. */
export async function putBindings(
  tx: Runner,
  computerId: string,
  list: readonly AppliedSecret[],
): Promise<void> {
  await tx.run(count, [computerId]);
  await tx.run(clear, [computerId]);
  const column = (name: keyof AppliedSecret) => list.map((binding) => binding[name]);
  const columns = [column('secret_id'), column('revision_id'), column('env'), column('file')];
  await tx.run(insert, [computerId, ...columns]);
}

const forget = sql('DELETE FROM computer_secrets WHERE computer_id = $1');

export async function forgetBindings(tx: Runner, computerId: string): Promise<void> {
  await tx.run(forget, [computerId]);
}

const begin = sql(`
  UPDATE computer_secrets SET generation = generation + 1, serial = serial + 1, due_at = NULL, tries = 0
  WHERE computer_id = $1 RETURNING serial`);

/** For a start; returns the number of its delivery. */
export async function beginDelivery(tx: Runner, computerId: string): Promise<number> {
  return only(await tx.run<{ serial: number }>(begin, [computerId])).serial;
}

const takeBack = sql(
  'UPDATE computer_secrets SET generation = generation - 1 WHERE computer_id = $1',
);

/** The start was never made. */
export async function takeBackDelivery(tx: Runner, computerId: string): Promise<void> {
  await tx.run(takeBack, [computerId]);
}

export interface SealedSecret {
  secret_id: string;
  revision_id: string;
  env: string | null;
  file: string | null;
  /** Null for one that was deleted. */
  sealed: Buffer | null;
}

const sealed = sql(`
  SELECT b.secret_id, x.revision_id, b.env, b.file, x.sealed
  FROM secret_bindings b JOIN secrets x ON x.id = b.secret_id
  WHERE b.computer_id = $1 ORDER BY b.position`);

export async function sealedSecrets(db: Runner, computerId: string): Promise<SealedSecret[]> {
  return db.run(sealed, [computerId]);
}

// In the order in which a rotation of the keyring locks them.
const used = sql(`
  UPDATE secrets SET last_used_at = clock_timestamp() WHERE id IN (
    SELECT id FROM secrets WHERE id = ANY($1) AND deleted_at IS NULL ORDER BY id FOR NO KEY UPDATE)`);
const apply = sql(`
  UPDATE computer_secrets SET applied = $2, applied_serial = $3, applied_generation = generation,
    applied_at = clock_timestamp(), error = NULL, delivering_until = NULL
  WHERE computer_id = $1 AND serial = $3 RETURNING computer_id`);
const revise = sql(`
  UPDATE secret_bindings b SET revision_id = t.revision_id
  FROM unnest($2::text[], $3::text[]) AS t (secret_id, revision_id)
  WHERE b.computer_id = $1 AND b.secret_id = t.secret_id`);

/** The computer holds `list` by this delivery, unless a later one was begun: that one will tell. */
export async function setApplied(
  tx: Runner,
  computerId: string,
  serial: number,
  list: readonly AppliedSecret[],
  delivered: readonly AppliedSecret[] = list,
): Promise<void> {
  await tx.run(used, [delivered.map(({ secret_id }) => secret_id)]);
  const applied = await tx.run(apply, [computerId, JSON.stringify(list), serial]);
  if (applied.length === 0) return;
  const [ids, revisions] = [list.map((one) => one.secret_id), list.map((one) => one.revision_id)];
  await tx.run(revise, [computerId, ids, revisions]);
}

const empty = sql(`
  UPDATE computer_secrets SET applied = NULL, applied_serial = NULL, applied_generation = NULL,
    applied_at = NULL, error = $2, due_at = NULL
  WHERE computer_id = $1`);

/** The computer holds nothing; `error` says why where that is not as it should be. */
export async function clearApplied(
  tx: Runner,
  computerId: string,
  error: string | null = null,
): Promise<void> {
  await tx.run(empty, [computerId, error]);
}
