// Rows that one process works on at a time, in SQL: each is held until a moment, which a living holder puts
// off, and is taken up by another process once that has passed.

import { type Runner, sql } from './database.ts';

/** How long a row stays with a process that has fallen silent. */
export const holdS = 10;

export interface LeasedTable<Row> {
  /** Held for another while. */
  renew(db: Runner, ids: readonly string[]): Promise<void>;
  /** Rows that nobody holds any more, held by the asker from now on. */
  takeUp(db: Runner, most: number): Promise<Row[]>;
}

/** `underWay`: the condition of rows that are still worked on. */
export function leasedTable<Row extends object>(
  table: string,
  underWay: string,
  columns: string,
): LeasedTable<Row> {
  const renew = sql(`
    UPDATE ${table} SET held_until = clock_timestamp() + make_interval(secs => $2)
    WHERE id = ANY($1) AND ${underWay}`);
  const takeUp = sql(`
    UPDATE ${table} SET held_until = clock_timestamp() + make_interval(secs => $1)
    WHERE id IN (
      SELECT id FROM ${table} WHERE ${underWay} AND held_until < clock_timestamp()
      ORDER BY held_until LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING ${columns}`);
  return {
    async renew(db, ids) {
      await db.run(renew, [ids, holdS]);
    },
    takeUp: (db, most) => db.run<Row>(takeUp, [holdS, most]),
  };
}
