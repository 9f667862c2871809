// Idempotency keys: wire-computers section 10.

import { hash } from 'node:crypto';
import { Refusal } from '@cubicle/contract/errors.ts';
import { idempotencyKeyPattern } from '@cubicle/contract/resources/operations.ts';
import { type Database, type Runner } from '../db/database.ts';
import { claimKey, findKey, type KeyRow } from '../db/idempotency.ts';
import type { Scope } from '../db/scope.ts';

/** A call that was sent with a key. */
export interface Keyed {
  readonly key: string;
  readonly digest: string;
}

/** What was answered to the first call with the key. */
export interface Replay {
  readonly status: number;
  readonly body: unknown;
}

export function checkKey(key: string): void {
  if (!idempotencyKeyPattern.test(key)) throw new Refusal('idempotency_key_invalid');
}

export function requestDigest(parts: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(parts), 'hex');
}

/** Whether the key was used before, which makes the call cheap (Part 8). */
export async function isKnownKey(db: Database, scope: Scope, key: string): Promise<boolean> {
  return (await findKey(db, scope, key)) !== undefined;
}

/** The stored answer of an earlier call, or undefined when the call is to be carried out. */
export async function replayOf(
  db: Runner,
  scope: Scope,
  keyed: Keyed,
): Promise<Replay | undefined> {
  const row = await findKey(db, scope, keyed.key);
  return row === undefined ? undefined : answerOf(row, keyed);
}

function answerOf(row: KeyRow, keyed: Keyed): Replay {
  if (row.request_digest !== keyed.digest) throw new Refusal('idempotency_key_reused');
  const extra = row.operation_id === null ? {} : { operation_id: row.operation_id };
  // Spent for the rest of its day, even when the outcome was found out later.
  if (row.outcome_unknown) throw new Refusal('idempotency_outcome_unknown', {}, extra);
  if (row.answer_status !== null) return { status: row.answer_status, body: row.answer };
  throw new Refusal('idempotency_in_progress', {}, extra);
}

/** Takes the key for this call; when another call took it meanwhile, that one's state is told. */
export async function takeKey(
  tx: Runner,
  scope: Scope,
  keyed: Keyed,
  operationId: string | null,
): Promise<void> {
  if (await claimKey(tx, scope, { ...keyed, operationId })) return;
  const row = await findKey(tx, scope, keyed.key);
  if (row !== undefined) answerOf(row, keyed);
  // It has its answer by now, or was released: the caller's next try tells.
  const extra = row?.operation_id ? { operation_id: row.operation_id } : {};
  throw new Refusal('idempotency_in_progress', {}, extra);
}
