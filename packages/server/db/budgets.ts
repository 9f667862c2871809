// Rate budgets as PostgreSQL keeps them for all processes; the arithmetic is in lease_budget().

import { only, type Runner, sql } from './database.ts';

export interface Lease {
  granted: number;
  /** What is left in each bucket after the grant. */
  account_level: number;
  key_level: number;
}

const lease = sql('SELECT * FROM lease_budget($1, $2, $3, $4, $5, $6)');

export interface LeaseAsk {
  readonly accountId: string;
  readonly keyId: string;
  readonly cap: number;
  /** What the asking process holds of earlier leases, for the account and for the key. */
  readonly accountHeld: number;
  readonly keyHeld: number;
  readonly need: number;
}

export async function leaseBudget(db: Runner, ask: LeaseAsk): Promise<Lease> {
  const { accountId, keyId, cap, accountHeld, keyHeld, need } = ask;
  const values = [accountId, keyId, cap, accountHeld, keyHeld, need];
  return only(await db.run<Lease>(lease, values));
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
