// Rate budgets as PostgreSQL keeps them for all processes; the arithmetic is in lease_budgets().

import { type Database, type Runner, sql } from './database.ts';
import { gathered } from './gather.ts';

export interface Lease {
  granted: number;
  /** What is left in each bucket after the grant. */
  account_level: number;
  key_level: number;
}

export interface LeaseAsk {
  readonly accountId: string;
  readonly keyId: string;
  readonly cap: number;
  /** What the asking process holds of earlier leases, for the account and for the key. */
  readonly accountHeld: number;
  readonly keyHeld: number;
  readonly need: number;
  readonly want: number;
}

const lease = sql('SELECT * FROM lease_budgets($1, $2, $3, $4, $5, $6, $7)');

/** Leases asked for at once travel together. */
export function budgetLeaser(database: Database): (ask: LeaseAsk) => Promise<Lease> {
  return gathered(async (asks: LeaseAsk[]) => {
    const column = (name: keyof LeaseAsk) => asks.map((ask) => ask[name]);
    const rows = await database.run<Lease & { n: number }>(lease, [
      column('accountId'),
      column('keyId'),
      column('cap'),
      column('accountHeld'),
      column('keyHeld'),
      column('need'),
      column('want'),
    ]);
    return rows.toSorted((a, b) => a.n - b.n);
  });
}

// Sorted, so that two processes giving back at once lock rows in the same order.
const giveBack = sql(`
  WITH returned AS (
    SELECT bucket, sum(amount) AS amount
    FROM unnest($1::text[], $2::float8[]) AS given(bucket, amount) GROUP BY bucket
  ), locked AS (
    SELECT b.bucket FROM rate_budgets b JOIN returned USING (bucket) ORDER BY b.bucket FOR NO KEY UPDATE OF b
  )
  UPDATE rate_budgets b SET level = b.level + returned.amount
  FROM returned, locked WHERE b.bucket = returned.bucket AND b.bucket = locked.bucket`);

export async function giveBackBudget(
  db: Runner,
  returned: readonly { bucket: string; amount: number }[],
): Promise<void> {
  await db.run(giveBack, [
    returned.map(({ bucket }) => bucket),
    returned.map(({ amount }) => amount),
  ]);
}

const forget = sql("DELETE FROM rate_budgets WHERE observed_at < now() - interval '2 minutes'");

/** A bucket untouched for longer than it takes to refill is full, and so needs no row. */
export async function forgetFullBudgets(db: Runner): Promise<void> {
  await db.run(forget, []);
}
