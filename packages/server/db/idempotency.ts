// Idempotency keys in SQL: per account and scope, for 24 hours.

import { type Runner, sql } from './database.ts';
import type { Scope } from './scope.ts';

export interface KeyRow {
  request_digest: string;
  operation_id: string | null;
  answer_status: number | null;
  answer: unknown;
  outcome_unknown: boolean;
}

const columns = 'request_digest, operation_id, answer_status, answer, outcome_unknown';
const kept = "created_at > clock_timestamp() - interval '24 hours'";
const scopeOf = (scope: Scope) => scope.workspaceId ?? '';

const find = sql(
  `SELECT ${columns} FROM idempotency_keys WHERE account_id = $1 AND scope = $2 AND key = $3 AND ${kept}`,
);

export async function findKey(db: Runner, scope: Scope, key: string): Promise<KeyRow | undefined> {
  return (await db.run<KeyRow>(find, [scope.accountId, scopeOf(scope), key]))[0];
}

// A key older than its day is as good as new.
const claim = sql(`
  INSERT INTO idempotency_keys AS k (account_id, scope, key, request_digest, operation_id)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (account_id, scope, key) DO UPDATE SET request_digest = excluded.request_digest,
    operation_id = excluded.operation_id, answer_status = NULL, answer = NULL, outcome_unknown = false,
    created_at = clock_timestamp()
  WHERE k.created_at <= clock_timestamp() - interval '24 hours'
  RETURNING key`);

/** False when the key is taken. */
export async function claimKey(
  tx: Runner,
  scope: Scope,
  claimed: { key: string; digest: string; operationId: string | null },
): Promise<boolean> {
  const { key, digest, operationId } = claimed;
  const values = [scope.accountId, scopeOf(scope), key, digest, operationId];
  return (await tx.run(claim, values)).length > 0;
}

// The first answer stands: a clone is settled again when its copy is done.
const store = sql(`
  UPDATE idempotency_keys SET answer_status = $2, answer = $3
  WHERE operation_id = $1 AND answer_status IS NULL`);

export async function storeAnswer(
  tx: Runner,
  operationId: string,
  status: number,
  answer: unknown,
): Promise<void> {
  await tx.run(store, [operationId, status, JSON.stringify(answer)]);
}

const storeFor = sql(`
  UPDATE idempotency_keys SET answer_status = $4, answer = $5
  WHERE account_id = $1 AND scope = $2 AND key = $3`);

/** For a call that records no operation. */
export async function storeAnswerFor(
  tx: Runner,
  scope: Scope,
  key: string,
  status: number,
  answer: unknown,
): Promise<void> {
  const values = [scope.accountId, scopeOf(scope), key, status, JSON.stringify(answer)];
  await tx.run(storeFor, values);
}

const release = sql('DELETE FROM idempotency_keys WHERE operation_id = $1');

export async function releaseKey(tx: Runner, operationId: string): Promise<void> {
  await tx.run(release, [operationId]);
}

const releaseUnspent = sql(`
  DELETE FROM idempotency_keys WHERE operation_id = $1 AND NOT outcome_unknown`);

/** A caller who was told that the outcome is unknown keeps being told so. */
export async function releaseUnspentKey(tx: Runner, operationId: string): Promise<void> {
  await tx.run(releaseUnspent, [operationId]);
}

const spend = sql('UPDATE idempotency_keys SET outcome_unknown = true WHERE operation_id = $1');

export async function spendKey(tx: Runner, operationId: string): Promise<void> {
  await tx.run(spend, [operationId]);
}

const trim = sql(`DELETE FROM idempotency_keys WHERE NOT (${kept})`);

export async function trimKeys(db: Runner): Promise<void> {
  await db.run(trim, []);
}
