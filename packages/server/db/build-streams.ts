// Open streams of builds in SQL, counted by account over all processes.

import { type Database, sql } from './database.ts';

// Two that come at once take turns, so that both do not take the last place.
const turn = sql(`SELECT pg_advisory_xact_lock(hashtextextended('build streams ' || $1, 0))`);
const enter = sql(`
  INSERT INTO build_streams (id, account_id, held_until)
  SELECT $2, $1, clock_timestamp() + make_interval(secs => $4)
  WHERE (SELECT count(*) FROM build_streams WHERE account_id = $1 AND held_until > clock_timestamp()) < $3
  RETURNING id`);

/** Whether there was a place left. */
export async function enterStream(
  database: Database,
  stream: { accountId: string; id: string; most: number; holdS: number },
): Promise<boolean> {
  const { accountId, id, most, holdS } = stream;
  return database.transaction(async (tx) => {
    await tx.run(turn, [accountId]);
    return (await tx.run(enter, [accountId, id, most, holdS])).length > 0;
  });
}

const renew = sql(`
  UPDATE build_streams SET held_until = clock_timestamp() + make_interval(secs => $2) WHERE id = ANY($1)`);

export async function renewStreams(
  database: Database,
  ids: readonly string[],
  holdS: number,
): Promise<void> {
  await database.run(renew, [ids, holdS]);
}

const leave = sql('DELETE FROM build_streams WHERE id = $1');

export async function leaveStream(database: Database, id: string): Promise<void> {
  await database.run(leave, [id]);
}

const trim = sql('DELETE FROM build_streams WHERE held_until < clock_timestamp()');

export async function trimStreams(database: Database): Promise<void> {
  await database.run(trim, []);
}
