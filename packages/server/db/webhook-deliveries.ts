// Records of deliveries in SQL, as callers see and make them. The queue's own statements are in
// webhook-lanes.ts.

import { only, type Runner, sql } from './database.ts';

export type DeliveryState = 'pending' | 'in_flight' | 'delivered' | 'exhausted' | 'dropped';

export interface DeliveryRow {
  id: string;
  event_type: string;
  computer: string;
  cursor: string;
  state: DeliveryState;
  attempts: number;
  next_at: Date | null;
  attempted_at: Date | null;
  last_status: number | null;
  last_error: string | null;
  delivered_at: Date | null;
  created_at: Date;
}

const columns = `id, event_type, computer, cursor, state, attempts, next_at, attempted_at, last_status,
  last_error, delivered_at, created_at`;

const newest = sql(`
  SELECT ${columns} FROM webhook_deliveries WHERE webhook_id = $1
  ORDER BY created_at DESC, seq DESC LIMIT $2`);

export async function newestDeliveries(
  db: Runner,
  webhookId: string,
  most: number,
): Promise<DeliveryRow[]> {
  return db.run(newest, [webhookId, most]);
}

const find = sql(`SELECT ${columns} FROM webhook_deliveries WHERE webhook_id = $1 AND id = $2`);

export async function findDelivery(
  db: Runner,
  webhookId: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  return (await db.run<DeliveryRow>(find, [webhookId, id]))[0];
}

export interface NewDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly type: string;
  readonly cursor: string;
  readonly body: string;
}

const insert = sql(`
  INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, next_at, created_at)
  VALUES ($1, $2, $3, '', $4, $5, $6, $6) RETURNING ${columns}`);

/** One of no computer's. The subscription's row must be locked. */
export async function queueDelivery(
  tx: Runner,
  { id, webhookId, type, cursor, body }: NewDelivery,
  now: Date,
): Promise<DeliveryRow> {
  const row = only(await tx.run<DeliveryRow>(insert, [id, webhookId, type, cursor, body, now]));
  await wakeLanes(tx, [webhookId], now);
  return row;
}

const repeatOne = sql(`
  INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, next_at, created_at)
  SELECT $3, webhook_id, event_type, computer, cursor, body, $4, $4
  FROM webhook_deliveries WHERE webhook_id = $1 AND id = $2
  RETURNING ${columns}`);

/** A new delivery of the event of another. The subscription's row must be locked. */
export async function repeatDelivery(
  tx: Runner,
  webhookId: string,
  id: string,
  newId: string,
  now: Date,
): Promise<DeliveryRow | undefined> {
  const [row] = await tx.run<DeliveryRow>(repeatOne, [webhookId, id, newId, now]);
  if (row !== undefined) await wakeLanes(tx, [webhookId], now);
  return row;
}

export interface RepeatedRange {
  readonly from: Date;
  readonly to: Date;
  readonly states: readonly DeliveryState[];
  readonly most: number;
}

/** Sixty-four random bits, anew for each row: the ends of random UUIDs, past version and variant. */
export const randomDeliveryId = `'whd-' || left(gen_random_uuid()::text, 8) || right(gen_random_uuid()::text, 8)`;

const beyond = sql(`
  SELECT created_at FROM webhook_deliveries
  WHERE webhook_id = $1 AND created_at >= $2 AND created_at < $3 AND state = ANY($4)
  ORDER BY created_at, seq OFFSET $5 LIMIT 1`);
const repeatMany = sql(`
  WITH queued AS (
    INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, next_at, created_at)
    SELECT ${randomDeliveryId}, webhook_id, event_type, computer, cursor, body, $5, $5
    FROM webhook_deliveries
    WHERE webhook_id = $1 AND created_at >= $2 AND created_at < $3 AND state = ANY($4)
    ORDER BY created_at, seq
    RETURNING 1)
  SELECT count(*) AS count FROM queued`);

/** How many were queued, and from when on there are more. The subscription's row must be locked. */
export async function repeatDeliveries(
  tx: Runner,
  webhookId: string,
  { from, to, states, most }: RepeatedRange,
  now: Date,
): Promise<{ queued: number; nextFrom: Date | undefined }> {
  const [next] = await tx.run<{ created_at: Date }>(beyond, [webhookId, from, to, states, most]);
  const nextFrom = next?.created_at;
  const values = [webhookId, from, nextFrom ?? to, states, now];
  const { count: queued } = only(await tx.run<{ count: number }>(repeatMany, values));
  if (queued > 0) await wakeLanes(tx, [webhookId], now);
  return { queued, nextFrom };
}

// Locked first and then read anew: a lane that is being let go meanwhile was judged without these rows.
const lockLanes = sql(`
  SELECT FROM webhook_lanes WHERE webhook_id = ANY($1) ORDER BY webhook_id FOR NO KEY UPDATE`);
const markDue = sql(`
  WITH due AS (UPDATE webhook_lanes SET due_at = $2 WHERE webhook_id = ANY($1) AND due_at > $2)
  SELECT pg_notify('cubicle_webhooks', '')`);

/** After rows were added: nobody lets go of these lanes without having seen them. */
export async function wakeLanes(
  tx: Runner,
  webhookIds: readonly string[],
  now: Date,
): Promise<void> {
  await tx.run(lockLanes, [webhookIds]);
  await tx.run(markDue, [webhookIds, now]);
}

const trim = sql(`
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE state IN ('delivered', 'exhausted', 'dropped') AND created_at < $1
    ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING 1`);
const trimmedAtOnce = 5_000;

/** Removes some of the finished ones queued before this time; false when there are no more. */
export async function trimDeliveries(db: Runner, before: Date): Promise<boolean> {
  return (await db.run(trim, [before, trimmedAtOnce])).length === trimmedAtOnce;
}
