// How builds go on and end, in SQL: progress, leases of whoever follows one, and what is kept of a family.

import { type BuildRow, type BuildStepRow, buildColumns, markSurplus } from './builds.ts';
import { type Runner, sql } from './database.ts';
import { leasedTable } from './leases.ts';

export const leasedBuilds = leasedTable<BuildRow>('builds', `status = 'running'`, buildColumns);

const letGo = sql(`
  UPDATE builds SET held_until = clock_timestamp() WHERE id = ANY($1) AND status = 'running'`);

export async function letGoOfBuilds(db: Runner, ids: readonly string[]): Promise<void> {
  await db.run(letGo, [ids]);
}

const runs = sql(`SELECT ${buildColumns} FROM builds WHERE id = $1 AND status = 'running'`);

export async function findRunning(db: Runner, id: string): Promise<BuildRow | undefined> {
  return (await db.run<BuildRow>(runs, [id]))[0];
}

export interface Told {
  readonly moves: number;
  readonly phase: string;
  readonly step: number;
  readonly steps: readonly BuildStepRow[];
  readonly note: string;
  readonly at: Date;
}

const advance = sql(`
  UPDATE builds SET moves = $2, phase = $3, step = $4, steps = $5, note = $6, updated_at = $7
  WHERE id = $1 AND status = 'running' AND moves < $2`);

export async function advanceBuild(db: Runner, id: string, told: Told): Promise<void> {
  await db.run(advance, [id, ...valuesOf(told)]);
}

const end = sql(`
  UPDATE builds SET moves = $2, phase = $3, step = $4, steps = $5, note = $6, updated_at = $7,
    status = $8, error = $9, finished_at = clock_timestamp(), kept = ($8 = 'succeeded'),
    image_id = CASE WHEN $8 = 'succeeded' THEN id END,
    kept_at = CASE WHEN $8 = 'succeeded' THEN clock_timestamp() END
  WHERE id = $1 AND status = 'running' RETURNING host_id, family`);

/** Whether it ran until now. */
export async function endBuild(
  tx: Runner,
  id: string,
  told: Told,
  ended: { status: 'succeeded' | 'failed'; error: string | null; keep: number },
): Promise<boolean> {
  const { status, error, keep } = ended;
  const values = [id, ...valuesOf(told), status, error];
  const [row] = await tx.run<{ host_id: string; family: string }>(end, values);
  if (row === undefined) return false;
  if (status === 'succeeded') await markSurplus(tx, row.host_id, row.family, keep);
  return true;
}

function valuesOf({ moves, phase, step, steps, note, at }: Told): unknown[] {
  return [moves, phase, step, JSON.stringify(steps), note, at];
}

// A create that is under way holds the image's row: that one's turn comes later. The others are looked at by
// a statement of its own, which sees the computers of creates that were under way until now.
const unused = `NOT EXISTS (
  SELECT FROM computers c WHERE c.build_id = builds.id AND c.state IN ('live', 'deleting'))`;
const lockSurplus = sql(`
  SELECT id FROM builds WHERE surplus AND kept AND ${unused} LIMIT 100 FOR UPDATE SKIP LOCKED`);
const anySurplus = sql(`SELECT FROM builds WHERE surplus AND kept AND ${unused} LIMIT 1`);
const remove = sql(`
  UPDATE builds SET kept = false, surplus = false, removed_at = clock_timestamp()
  WHERE id = ANY($1) AND kept AND ${unused}`);

export async function hasSurplus(db: Runner): Promise<boolean> {
  return (await db.run(anySurplus, [])).length > 0;
}

/** Gives up images of older builds that no computer uses. */
export async function removeSurplus(tx: Runner): Promise<void> {
  const rows = await tx.run<{ id: string }>(lockSurplus, []);
  await tx.run(remove, [rows.map(({ id }) => id)]);
}

const missing = sql(`
  UPDATE builds SET kept = false, surplus = false, removed_at = clock_timestamp()
  WHERE id = ANY($1) AND kept AND status = 'succeeded'`);

/** Images that their host does not have any more. */
export async function forgetImages(db: Runner, ids: readonly string[]): Promise<void> {
  await db.run(missing, [ids]);
}

const unwanted = sql(
  `SELECT id FROM builds WHERE id = ANY($1) AND status <> 'running' AND NOT kept`,
);

/** Of what a host holds, what nobody needs. What no record knows is left alone. */
export async function unwantedBuilds(db: Runner, ids: readonly string[]): Promise<string[]> {
  return (await db.run<{ id: string }>(unwanted, [ids])).map(({ id }) => id);
}

const heldBy = sql(`
  SELECT id FROM builds WHERE host_id = $1 AND kept AND status = 'succeeded'`);

export async function imagesOn(db: Runner, hostId: string): Promise<string[]> {
  return (await db.run<{ id: string }>(heldBy, [hostId])).map(({ id }) => id);
}

// A reuse is how its document finds the image: the newest one of each stays as long as the image does.
const trim = sql(`
  DELETE FROM builds b
  WHERE NOT b.kept AND b.status <> 'running' AND b.finished_at < clock_timestamp() - make_interval(days => $1)
    AND (b.image_id IS NULL
      OR NOT EXISTS (SELECT FROM builds image WHERE image.id = b.image_id AND image.kept)
      OR EXISTS (SELECT FROM builds newer WHERE newer.image_id = b.image_id
        AND newer.doc_digest = b.doc_digest AND newer.seq > b.seq))`);

export async function trimBuilds(db: Runner, days: number): Promise<void> {
  await db.run(trim, [days]);
}
