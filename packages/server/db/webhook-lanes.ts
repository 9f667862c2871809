// The queue of deliveries in SQL: a lane per subscription, held by one process at a time. Every statement
// looks at rows that are due or under way, never at the backlog: see the indexes of webhook_deliveries.

import type { Database, Runner } from './database.ts';
import { sql } from './database.ts';
import type { DeliveryState } from './webhook-deliveries.ts';
import type { DisabledReason } from './webhooks.ts';

/** A holder that does not renew for so long has gone. By the database's clock. */
export const leaseMs = 15_000;

// What was under way when the last holder went is sent again at once: it may have arrived or not, and
// an attempt whose end nobody heard is not counted.
const take = sql(`
  WITH due AS (
    SELECT webhook_id FROM webhook_lanes
    WHERE due_at <= $1 AND held_until < clock_timestamp()
    ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED
  ), taken AS (
    UPDATE webhook_lanes l SET holder = $2, held_until = clock_timestamp() + $4 * interval '1 ms'
    FROM due WHERE l.webhook_id = due.webhook_id RETURNING l.webhook_id
  ), repeated AS (
    UPDATE webhook_deliveries SET state = 'pending', attempts = attempts - 1, next_at = $1
    WHERE webhook_id = ANY(ARRAY(SELECT webhook_id FROM taken)) AND state = 'in_flight'
  )
  SELECT webhook_id FROM taken`);

/** Lanes with something due that nobody holds, those that have waited longest first. */
export async function takeLanes(
  db: Runner,
  holder: string,
  now: Date,
  most: number,
): Promise<string[]> {
  const rows = await db.run<{ webhook_id: string }>(take, [now, holder, most, leaseMs]);
  return rows.map(({ webhook_id }) => webhook_id);
}

const renew = sql(`
  UPDATE webhook_lanes SET held_until = clock_timestamp() + $3 * interval '1 ms'
  WHERE webhook_id = ANY($1) AND holder = $2 RETURNING webhook_id`);

/** Those that are still held. */
export async function renewLanes(
  db: Runner,
  holder: string,
  ids: readonly string[],
): Promise<Set<string>> {
  const rows = await db.run<{ webhook_id: string }>(renew, [ids, holder, leaseMs]);
  return new Set(rows.map(({ webhook_id }) => webhook_id));
}

export interface Target {
  webhook_id: string;
  url: string;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  previous_until: Date | null;
}

export interface DueDelivery {
  id: string;
  body: string;
  attempts: number;
  next_at: Date;
  last_status: number | null;
  last_error: string | null;
}

type FetchedRow = Target & { [Field in keyof DueDelivery]: DueDelivery[Field] | null };

const fetchDue = sql(`
  SELECT asked.webhook_id, w.url, w.enabled, w.disabled_reason, w.secret, w.previous_secret,
    w.previous_until, d.id, d.body, d.attempts, d.next_at, d.last_status, d.last_error
  FROM unnest($1::text[]) AS asked(webhook_id)
  JOIN webhooks w ON w.id = asked.webhook_id
  LEFT JOIN LATERAL (
    SELECT id, body, attempts, next_at, last_status, last_error FROM webhook_deliveries
    WHERE webhook_id = asked.webhook_id AND state = 'pending' AND next_at <= $2
    ORDER BY next_at, seq LIMIT $3
  ) d ON true`);

export interface Fetched {
  readonly target: Target;
  readonly due: DueDelivery[];
}

/** The subscriptions as they stand, with what is due; one that was deleted is missing. */
export async function fetchLanes(
  db: Runner,
  ids: readonly string[],
  now: Date,
  most: number,
): Promise<Map<string, Fetched>> {
  const fetched = new Map<string, Fetched>();
  for (const row of await db.run<FetchedRow>(fetchDue, [ids, now, most])) {
    let lane = fetched.get(row.webhook_id);
    if (lane === undefined) fetched.set(row.webhook_id, (lane = { target: row, due: [] }));
    if (row.id !== null) lane.due.push(row as DueDelivery);
  }
  return fetched;
}

export interface DeliveryWrite {
  readonly id: string;
  readonly webhookId: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly nextAt: Date | null;
  readonly attemptedAt: Date;
  readonly status: number | null;
  readonly error: string | null;
  readonly deliveredAt: Date | null;
}

const written = `
  FROM unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::timestamptz[], $7::timestamptz[],
    $8::int[], $9::text[], $10::timestamptz[])
    AS r(id, webhook_id, state, attempts, next_at, attempted_at, status, error, delivered_at)
  JOIN webhook_lanes l ON l.webhook_id = r.webhook_id AND l.holder = $1`;
const fields = `
  UPDATE webhook_deliveries d SET state = r.state, attempts = r.attempts, next_at = r.next_at,
    attempted_at = r.attempted_at, last_status = r.status, last_error = r.error,
    delivered_at = r.delivered_at`;

const begun = sql(`${fields} ${written} WHERE d.id = r.id AND d.state = 'pending'`);

// The subscription's row first: a delete locks in that order too.
const ended = sql(`
  WITH outcome AS (
    UPDATE webhooks w SET
      last_success_at = greatest(w.last_success_at, o.success_at),
      last_failure_at = greatest(w.last_failure_at, o.failure_at),
      last_status = o.status
    FROM unnest($11::text[], $12::timestamptz[], $13::timestamptz[], $14::int[])
      AS o(webhook_id, success_at, failure_at, status)
    WHERE w.id = o.webhook_id RETURNING w.id
  )
  ${fields} ${written} JOIN outcome o ON o.id = r.webhook_id
  WHERE d.id = r.id AND d.state IN ('pending', 'in_flight')`);

function columnsOf(writes: readonly DeliveryWrite[]): unknown[] {
  return [
    writes.map((write) => write.id),
    writes.map((write) => write.webhookId),
    writes.map((write) => write.state),
    writes.map((write) => write.attempts),
    writes.map((write) => write.nextAt),
    writes.map((write) => write.attemptedAt),
    writes.map((write) => write.status),
    writes.map((write) => write.error),
    writes.map((write) => write.deliveredAt),
  ];
}

/** Attempts that are under way. Of lanes that were lost nothing is written. */
export async function writeBegun(
  db: Runner,
  holder: string,
  writes: readonly DeliveryWrite[],
): Promise<void> {
  await db.run(begun, [holder, ...columnsOf(writes)]);
}

/** What came of attempts, in the order in which they ended. */
export async function writeEnded(
  db: Runner,
  holder: string,
  writes: readonly DeliveryWrite[],
): Promise<void> {
  interface Outcome {
    success: Date | null;
    failure: Date | null;
    status: number | null;
  }
  const outcomes = new Map<string, Outcome>();
  for (const { webhookId, state, status, attemptedAt, deliveredAt } of writes) {
    const outcome = outcomes.get(webhookId) ?? { success: null, failure: null, status: null };
    outcome.status = status;
    if (state === 'delivered') outcome.success = deliveredAt;
    else outcome.failure = attemptedAt;
    outcomes.set(webhookId, outcome);
  }
  const rows = [...outcomes.values()];
  await db.run(ended, [
    holder,
    ...columnsOf(writes),
    [...outcomes.keys()],
    rows.map(({ success }) => success),
    rows.map(({ failure }) => failure),
    rows.map(({ status }) => status),
  ]);
}

const unsent = sql(`
  UPDATE webhook_deliveries SET state = 'pending', attempts = attempts - 1, next_at = $3
  WHERE id = ANY($1) AND state = 'in_flight'
    AND webhook_id IN (SELECT webhook_id FROM webhook_lanes WHERE holder = $2)`);

/** Attempts that were broken off: due again at once, and not counted. */
export async function writeUnsent(
  db: Runner,
  holder: string,
  ids: readonly string[],
  now: Date,
): Promise<void> {
  await db.run(unsent, [ids, holder, now]);
}

// Their lanes fall due at once, for what is pending is dropped whenever it would have been.
const disableFailing = sql(`
  WITH disabled AS (
    UPDATE webhooks SET enabled = false, disabled_reason = 'failing', disabled_at = $2, updated_at = $2
    WHERE id = ANY($1) AND enabled AND (id = ANY($3)
      OR greatest(coalesce(last_success_at, '-infinity'), enabled_at) <= $4)
    RETURNING id
  ), due AS (
    UPDATE webhook_lanes SET due_at = $2 WHERE webhook_id IN (
      SELECT webhook_id FROM webhook_lanes
      WHERE webhook_id IN (SELECT id FROM disabled) AND due_at > $2
      ORDER BY webhook_id FOR NO KEY UPDATE)
  )
  SELECT id FROM disabled`);
const dropSome = sql(`
  UPDATE webhook_deliveries SET state = 'dropped', next_at = NULL, last_error = $2
  WHERE id IN (
    SELECT id FROM webhook_deliveries
    WHERE webhook_id = $1 AND state = 'pending' AND next_at <= $3 AND id <> ALL($5)
    ORDER BY next_at, seq LIMIT $4 FOR UPDATE SKIP LOCKED)
  RETURNING 1`);

/** Rows that one statement drops. */
const droppedAtOnce = 1_000;

/** Some of those due by this time, but for those under way; false when there are no more. */
export async function dropPending(
  db: Runner,
  webhookId: string,
  why: string,
  dueBy: Date | 'infinity',
  underWay: readonly string[],
): Promise<boolean> {
  const rows = await db.run(dropSome, [webhookId, why, dueBy, droppedAtOnce, underWay]);
  return rows.length === droppedAtOnce;
}

/**
 * Part 3: a delivery of each of these ran out of attempts; where nothing was accepted since `acceptedSince`
 * the subscription is disabled. `gone`: the receiver said that it wants no more.
 */
export async function disableFailingWebhooks(
  database: Database,
  exhausted: readonly string[],
  gone: readonly string[],
  acceptedSince: Date,
  now: Date,
): Promise<string[]> {
  const values = [[...exhausted, ...gone], now, gone, acceptedSince];
  return (await database.run<{ id: string }>(disableFailing, values)).map(({ id }) => id);
}

const lockHeld = sql(`
  SELECT webhook_id FROM webhook_lanes WHERE webhook_id = ANY($1) AND holder = $2
  ORDER BY webhook_id FOR UPDATE`);
// The next row that falls due is one look into the index. A lane with more to do stands behind the others, and
// one that was disabled for failing since its holder last looked has to drop what is pending now.
const letGo = sql(`
  UPDATE webhook_lanes l SET holder = NULL, held_until = '-infinity',
    due_at = coalesce((SELECT CASE WHEN EXISTS (SELECT FROM webhooks w
        WHERE w.id = l.webhook_id AND w.disabled_reason = 'failing') THEN $2 ELSE greatest($2, next_at) END
      FROM webhook_deliveries d
      WHERE d.webhook_id = l.webhook_id AND d.state = 'pending' ORDER BY next_at, seq LIMIT 1), 'infinity')
  WHERE webhook_id = ANY($1)`);

/** Lets go of lanes, which fall due with their next delivery. */
export async function releaseLanes(
  database: Database,
  holder: string,
  ids: readonly string[],
  now: Date,
): Promise<void> {
  await database.transaction(async (tx) => {
    const held = await tx.run<{ webhook_id: string }>(lockHeld, [ids, holder]);
    if (held.length > 0) await tx.run(letGo, [held.map(({ webhook_id }) => webhook_id), now]);
  });
}
