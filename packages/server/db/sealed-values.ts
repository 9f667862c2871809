// Where values lie that the keyring sealed, and what each is sealed as. Whoever adds a column of such
// values adds it here: rotating the keyring seals all of them anew.

import { only, type Runner, sql, type Statement } from './database.ts';

export function aboutSecret(id: string, revisionId: string): string {
  return `secret:${id}:${revisionId}`;
}

export function aboutWebhook(id: string): string {
  return `webhook:${id}`;
}

export const aboutCheck = 'keyring-check';

interface Place {
  readonly unsealed: Statement;
  readonly seal: Statement;
}

/** `id` and `about` are SQL over the table's columns. */
function place(table: string, id: string, about: string, column = 'sealed'): Place {
  return {
    // Bytes 2 to 5 name the key.
    unsealed: sql(`
      SELECT ${id}::text AS id, ${about} AS about, ${column} AS sealed FROM ${table}
      WHERE ${column} IS NOT NULL AND substring(${column} FROM 2 FOR 4) <> $1 AND ${id}::text > $2
      ORDER BY ${id}::text LIMIT 100 FOR UPDATE`),
    seal: sql(`UPDATE ${table} SET ${column} = $2 WHERE ${id}::text = $1`),
  };
}

export const places: readonly Place[] = [
  place('secrets', 'id', `'secret:' || id || ':' || revision_id`),
  place('webhooks', 'id', `'webhook:' || id`, 'secret'),
  place('webhooks', 'id', `'webhook:' || id`, 'previous_secret'),
  place('keyring_check', 'one', `'${aboutCheck}'`),
];

export interface SealedRow {
  id: string;
  about: string;
  sealed: Buffer;
}

/** The next values that another key than this one sealed, locked. */
export async function sealedOtherwise(
  tx: Runner,
  { unsealed }: Place,
  keyId: string,
  after: string,
): Promise<SealedRow[]> {
  return tx.run(unsealed, [Buffer.from(keyId, 'hex'), after]);
}

export async function putSealed(
  tx: Runner,
  { seal }: Place,
  id: string,
  sealed: Buffer,
): Promise<void> {
  await tx.run(seal, [id, sealed]);
}

// The update that changes nothing makes the value that was there first come back.
const check = sql(`
  INSERT INTO keyring_check AS k (sealed) VALUES ($1)
  ON CONFLICT (one) DO UPDATE SET sealed = k.sealed RETURNING sealed`);

/** What the first server sealed; `mine` where this is the first. */
export async function keyringCheck(db: Runner, mine: Buffer): Promise<Buffer> {
  return only(await db.run<{ sealed: Buffer }>(check, [mine])).sealed;
}

const replaceCheck = sql('UPDATE keyring_check SET sealed = $1');

export async function replaceKeyringCheck(db: Runner, mine: Buffer): Promise<void> {
  await db.run(replaceCheck, [mine]);
}
