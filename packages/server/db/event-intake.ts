// How events of hosts become deliveries, in SQL: a page of events, its deliveries and the host's cursor are
// one transaction, so that nothing is lost or queued twice wherever it breaks off.

import { type Database, type Runner, sql } from './database.ts';
import { randomDeliveryId, wakeLanes } from './webhook-deliveries.ts';

/** A reader that does not renew for so long has gone. By the database's clock. */
const leaseMs = 10_000;

const hold = sql(`
  INSERT INTO event_readers AS r (host_id, holder, held_until)
  VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
  ON CONFLICT (host_id) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
    WHERE r.holder = excluded.holder OR r.held_until < clock_timestamp()
  RETURNING host_id`);

/** Whether this process reads the host's events for the next while. */
export async function holdReader(db: Runner, hostId: string, holder: string): Promise<boolean> {
  return (await db.run(hold, [hostId, holder, leaseMs])).length > 0;
}

const letGo = sql('DELETE FROM event_readers WHERE holder = $1');

export async function releaseReaders(db: Runner, holder: string): Promise<void> {
  await db.run(letGo, [holder]);
}

const readCursor = sql('SELECT cursor FROM event_cursors WHERE host_id = $1');

export async function cursorOf(db: Runner, hostId: string): Promise<string | undefined> {
  return (await db.run<{ cursor: string }>(readCursor, [hostId]))[0]?.cursor;
}

export interface EventRow {
  readonly type: string;
  readonly computer: string;
  readonly cursor: string;
  readonly at: Date;
  readonly body: string;
}

const begin = sql(`
  INSERT INTO event_cursors (host_id, cursor) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING cursor`);
const advance = sql(`
  UPDATE event_cursors SET cursor = $2 WHERE host_id = $1 AND cursor = $3 RETURNING cursor`);

// Part 2: by type, computer, and the workspace that the computer was in at the time. A gap passes every
// filter of types. After a plan has ended, computer.stopped is told for a while, and what is lost of it.
const queue = sql(`
  WITH queued AS (
    INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, next_at, created_at)
    SELECT ${randomDeliveryId}, w.id, e.type, e.computer, e.cursor, e.body, $6, $6
    FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[])
      WITH ORDINALITY AS e(type, computer, cursor, at, body, n)
    JOIN computers c ON c.id = e.computer
    LEFT JOIN LATERAL (
      SELECT true AS moved, workspace_id FROM computer_moves m
      WHERE m.computer_id = e.computer AND m.left_at > e.at ORDER BY m.left_at LIMIT 1
    ) earlier ON true
    JOIN webhooks w ON w.account_id = c.account_id
      AND (w.workspace_id IS NULL OR w.workspace_id =
        CASE WHEN earlier.moved THEN earlier.workspace_id ELSE c.workspace_id END)
      AND (w.computers = '{}' OR e.computer = ANY(w.computers))
      AND (w.events = '{}' OR e.type = 'gap' OR e.type = ANY(w.events))
      AND (w.enabled OR (w.disabled_reason = 'plan' AND w.disabled_at > $7
        AND e.type IN ('computer.stopped', 'gap')))
    ORDER BY e.n, w.seq
    FOR KEY SHARE OF w
    RETURNING webhook_id
  )
  SELECT webhook_id, count(*) AS count FROM queued GROUP BY webhook_id`);

export interface Intake {
  readonly hostId: string;
  /** The cursor that the page was read from; undefined for the first of this host. */
  readonly from: string | undefined;
  readonly cursor: string;
  readonly events: readonly EventRow[];
  /** Plans that ended before this time are over for good. */
  readonly planEndedSince: Date;
}

/** How many deliveries were queued; undefined when somebody else was faster, and nothing was done. */
export async function queueEvents(
  database: Database,
  { hostId, from, cursor, events, planEndedSince }: Intake,
  now: Date,
): Promise<number | undefined> {
  return database.transaction(async (tx) => {
    const moved = await (from === undefined
      ? tx.run(begin, [hostId, cursor])
      : tx.run(advance, [hostId, cursor, from]));
    if (moved.length === 0) return undefined;
    if (events.length === 0) return 0;
    const rows = await tx.run<{ webhook_id: string; count: number }>(queue, [
      events.map(({ type }) => type),
      events.map(({ computer }) => computer),
      events.map((event) => event.cursor),
      events.map(({ at }) => at),
      events.map(({ body }) => body),
      now,
      planEndedSince,
    ]);
    if (rows.length === 0) return 0;
    await wakeLanes(
      tx,
      rows.map(({ webhook_id }) => webhook_id),
      now,
    );
    return rows.reduce((sum, { count }) => sum + count, 0);
  });
}

const trimMoves = sql("DELETE FROM computer_moves WHERE left_at < now() - interval '7 days'");

/** No event that old is still to be read. */
export async function forgetMoves(db: Runner): Promise<void> {
  await db.run(trimMoves, []);
}
