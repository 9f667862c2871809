// Operations in SQL: recorded before they are carried out, taken up again when their holder is gone.

import { only, type Runner, sql } from './database.ts';
import { holdS, leasedTable } from './leases.ts';
import type { Scope } from './scope.ts';

export type OperationState = 'pending' | 'running' | 'succeeded' | 'failed';

export interface OperationRow {
  id: string;
  seq: number;
  account_id: string;
  computer_id: string;
  kind: string;
  state: OperationState;
  error_code: string | null;
  error_message: string | null;
  idempotency_key: string | null;
  command: unknown;
  created_at: Date;
  updated_at: Date;
  finished_at: Date | null;
}

const columns = `id, seq, account_id, computer_id, kind, state, error_code, error_message, idempotency_key,
  command, created_at, updated_at, finished_at`;

export interface NewOperation {
  id: string;
  accountId: string;
  computerId: string;
  kind: string;
  idempotencyKey: string | null;
  command: unknown;
}

const insert = sql(`
  INSERT INTO operations (id, account_id, computer_id, kind, state, idempotency_key, command, held_until)
  VALUES ($1, $2, $3, $4, 'pending', $5, $6, clock_timestamp() + make_interval(secs => $7))
  RETURNING ${columns}`);

/** Violates `operations_one_at_a_time` while another operation on the computer is unfinished. */
export async function insertOperation(tx: Runner, operation: NewOperation): Promise<OperationRow> {
  const { id, accountId, computerId, kind, idempotencyKey, command } = operation;
  const values = [id, accountId, computerId, kind, idempotencyKey, JSON.stringify(command), holdS];
  return only(await tx.run<OperationRow>(insert, values));
}

const lockUnfinished = sql(
  `SELECT ${columns} FROM operations WHERE id = $1 AND state IN ('pending', 'running') FOR UPDATE`,
);

/** Undefined when somebody else has finished it. */
export async function lockOperation(tx: Runner, id: string): Promise<OperationRow | undefined> {
  return (await tx.run<OperationRow>(lockUnfinished, [id]))[0];
}

// The clock is read once: an operation was last changed when it ended.
const finish = sql(`
  UPDATE operations SET state = $2, error_code = $3, error_message = $4,
    updated_at = statement_timestamp(),
    finished_at = CASE WHEN $2 IN ('succeeded', 'failed') THEN statement_timestamp() END
  WHERE id = $1`);

export async function setOperation(
  tx: Runner,
  id: string,
  state: OperationState,
  error?: { code: string; message: string },
): Promise<void> {
  await tx.run(finish, [id, state, error?.code ?? null, error?.message ?? null]);
}

const remove = sql('DELETE FROM operations WHERE id = $1');

/** A refused call records nothing. */
export async function forgetOperation(tx: Runner, id: string): Promise<void> {
  await tx.run(remove, [id]);
}

export const leasedOperations = leasedTable<OperationRow>(
  'operations',
  `state IN ('pending', 'running')`,
  columns,
);

// Whoever can read a computer can read its operations: bounded by where the computer is now.
const seen = `o.account_id = $1 AND o.created_at > clock_timestamp() - interval '7 days'
  AND ($2::text IS NULL OR EXISTS (
    SELECT FROM computers c WHERE c.id = o.computer_id AND c.workspace_id = $2))`;
const prefixed = columns
  .split(',')
  .map((column) => `o.${column.trim()}`)
  .join(', ');

const find = sql(`SELECT ${prefixed} FROM operations o WHERE ${seen} AND o.id = $3`);

export async function findOperation(
  db: Runner,
  scope: Scope,
  id: string,
): Promise<OperationRow | undefined> {
  return (await db.run<OperationRow>(find, [scope.accountId, scope.workspaceId, id]))[0];
}

const list = sql(`
  SELECT ${prefixed} FROM operations o
  WHERE ${seen} AND ($3::text IS NULL OR o.computer_id = $3) AND ($4::bigint IS NULL OR o.seq < $4)
  ORDER BY o.seq DESC LIMIT $5`);

export async function listOperations(
  db: Runner,
  scope: Scope,
  wish: { computerId: string | null; before: number | null; most: number },
): Promise<OperationRow[]> {
  const { accountId, workspaceId } = scope;
  return db.run(list, [accountId, workspaceId, wish.computerId, wish.before, wish.most]);
}

const byKey = sql(`
  SELECT ${prefixed} FROM idempotency_keys k JOIN operations o ON o.id = k.operation_id
  WHERE ${seen} AND k.account_id = $1 AND k.scope = coalesce($2, '') AND k.key = $3
    AND k.created_at > clock_timestamp() - interval '24 hours'
    AND ($4::text IS NULL OR o.computer_id = $4)`);

export async function findOperationByKey(
  db: Runner,
  scope: Scope,
  key: string,
  computerId: string | null,
): Promise<OperationRow[]> {
  return db.run(byKey, [scope.accountId, scope.workspaceId, key, computerId]);
}

const trim = sql("DELETE FROM operations WHERE created_at < clock_timestamp() - interval '7 days'");

export async function trimOperations(db: Runner): Promise<void> {
  await db.run(trim, []);
}
