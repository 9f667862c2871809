// The two allowances of builds in SQL: what an account asked for in the last 24 hours.

import { only, type Runner, sql } from './database.ts';

const window = `account_id = $1 AND at > clock_timestamp() - interval '24 hours'`;
const count = sql(`
  SELECT count(*)::int AS requests, count(*) FILTER (WHERE charged)::int AS builds
  FROM build_requests WHERE ${window}`);

export async function countRequests(
  tx: Runner,
  accountId: string,
): Promise<{ requests: number; builds: number }> {
  return only(await tx.run<{ requests: number; builds: number }>(count, [accountId]));
}

const frees = sql(`
  SELECT ceil(extract(epoch FROM at + interval '24 hours' - clock_timestamp()))::int AS seconds
  FROM build_requests WHERE ${window} AND (charged OR NOT $2)
  ORDER BY at DESC OFFSET $3 LIMIT 1`);

/** When one more is free again: when the oldest of the newest `most` is a day old. In seconds. */
export async function freeIn(
  tx: Runner,
  accountId: string,
  charged: boolean,
  most: number,
): Promise<number> {
  const [row] = await tx.run<{ seconds: number }>(frees, [accountId, charged, most - 1]);
  return Math.max(1, row?.seconds ?? 1);
}

const note = sql('INSERT INTO build_requests (account_id, build_id, charged) VALUES ($1, $2, $3)');

export async function noteRequest(
  tx: Runner,
  accountId: string,
  buildId: string | null,
  charged: boolean,
): Promise<void> {
  await tx.run(note, [accountId, buildId, charged]);
}

const forget = sql('DELETE FROM build_requests WHERE build_id = $1');

/** It reached nobody. */
export async function forgetRequest(db: Runner, buildId: string): Promise<void> {
  await db.run(forget, [buildId]);
}

const trim = sql("DELETE FROM build_requests WHERE at < clock_timestamp() - interval '24 hours'");

export async function trimRequests(db: Runner): Promise<void> {
  await db.run(trim, []);
}
