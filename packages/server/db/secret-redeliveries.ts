// Secrets for computers that run, in SQL: which may lack something, and who is bringing it.

import { only, type Runner, sql } from './database.ts';

/** How often in a row it is tried before only another start, resume or value makes it due again. */
const mostTries = 12;

const ofSecret = sql(`
  UPDATE computer_secrets SET due_at = clock_timestamp(), tries = 0
  WHERE computer_id IN (SELECT computer_id FROM secret_bindings WHERE secret_id = $1)`);

/** A value was replaced. */
export async function lookAtHolders(tx: Runner, secretId: string): Promise<void> {
  await tx.run(ofSecret, [secretId]);
}

const anew = sql(`
  UPDATE computer_secrets SET due_at = clock_timestamp(), tries = 0 WHERE computer_id = $1`);

export async function lookSoon(tx: Runner, computerId: string): Promise<void> {
  await tx.run(anew, [computerId]);
}

const unlessGivenUp = sql(`
  UPDATE computer_secrets SET due_at = clock_timestamp()
  WHERE computer_id = $1 AND due_at IS NULL AND tries < ${mostTries}`);

/** For whoever looks again and again. */
export async function lookUnlessGivenUp(db: Runner, computerId: string): Promise<void> {
  await db.run(unlessGivenUp, [computerId]);
}

/** A look that one process has taken; another takes it when this one does not come back in time. */
export interface Look {
  computer_id: string;
  /** As text: to know it again to the microsecond. */
  due: string;
}

const take = sql(`
  UPDATE computer_secrets SET due_at = clock_timestamp() + interval '30 seconds'
  WHERE computer_id IN (
    SELECT computer_id FROM computer_secrets WHERE due_at <= clock_timestamp()
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING computer_id, due_at::text AS due`);

export async function takeLooks(db: Runner, most: number): Promise<Look[]> {
  return db.run(take, [most]);
}

const done = sql(`
  UPDATE computer_secrets SET due_at = NULL, tries = 0 WHERE computer_id = $1 AND due_at::text = $2`);

/** Nothing is missing, as far as was asked: what was replaced meanwhile made it due anew. */
export async function endLook(db: Runner, { computer_id, due }: Look): Promise<void> {
  await db.run(done, [computer_id, due]);
}

const later = sql(`
  UPDATE computer_secrets SET tries = tries + 1,
    due_at = CASE WHEN tries + 1 < ${mostTries}
      THEN clock_timestamp() + least(power(2, tries), 300) * interval '1 second' END
  WHERE computer_id = $1 AND due_at::text = $2`);

export async function lookLater(db: Runner, { computer_id, due }: Look): Promise<void> {
  await db.run(later, [computer_id, due]);
}

const begin = sql(`
  UPDATE computer_secrets SET serial = serial + 1,
    delivering_until = clock_timestamp() + interval '20 seconds'
  WHERE computer_id = $1 RETURNING serial`);

/** The number of a delivery to a running computer, which the caller has locked. */
export async function beginRedelivery(tx: Runner, computerId: string): Promise<number> {
  return only(await tx.run<{ serial: number }>(begin, [computerId])).serial;
}

const end = sql(`
  UPDATE computer_secrets SET delivering_until = NULL WHERE computer_id = $1 AND serial = $2`);

export async function endRedelivery(db: Runner, computerId: string, serial: number): Promise<void> {
  await db.run(end, [computerId, serial]);
}
