// Builds in SQL: what callers and creates read, and how one comes to be.

import { only, type Runner, sql } from './database.ts';
import { holdS } from './leases.ts';

/** As it is kept and told. */
export interface BuildStepRow {
  kind: string;
  label: string;
  status: string;
  started_at?: string | undefined;
  finished_at?: string | undefined;
}

export interface BuildRow {
  id: string;
  /** Null for the service's own. */
  account_id: string | null;
  ref: string;
  doc_digest: string;
  build_key: string;
  family: string;
  parent: string;
  disk_gb: number;
  host_id: string;
  image_id: string | null;
  status: 'running' | 'succeeded' | 'failed';
  phase: string;
  step: number;
  steps: BuildStepRow[];
  note: string;
  error: string | null;
  moves: number;
  kept: boolean;
  started_at: Date;
  updated_at: Date;
  finished_at: Date | null;
}

const columns = `id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id, image_id, status, phase,
  step, steps, note, error, moves, kept, started_at, updated_at, finished_at`;
const prefixed = columns
  .split(',')
  .map((column) => `b.${column.trim()}`)
  .join(', ');

export const buildColumns = columns;

const find = sql(`SELECT ${columns} FROM builds WHERE account_id = $1 AND id = $2`);

export async function findBuild(
  db: Runner,
  accountId: string,
  id: string,
): Promise<BuildRow | undefined> {
  return (await db.run<BuildRow>(find, [accountId, id]))[0];
}

// Those whose image was removed are no longer held by anybody.
const list = sql(`
  SELECT ${prefixed} FROM builds b LEFT JOIN builds image ON image.id = b.image_id
  WHERE b.account_id = $1 AND (b.status <> 'succeeded' OR image.kept)
  ORDER BY b.seq DESC`);

export async function listBuilds(db: Runner, accountId: string): Promise<BuildRow[]> {
  return db.run(list, [accountId]);
}

export type NewBuild = Pick<
  BuildRow,
  | 'id'
  | 'account_id'
  | 'ref'
  | 'doc_digest'
  | 'build_key'
  | 'family'
  | 'parent'
  | 'disk_gb'
  | 'host_id'
  | 'steps'
>;

const insert = sql(`
  INSERT INTO builds (id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id, steps,
    status, phase, kept, held_until)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'running', 'planning', true,
    clock_timestamp() + make_interval(secs => $11))
  RETURNING ${columns}`);

/** Violates `builds_one_per_host` while another one runs there. */
export async function insertBuild(tx: Runner, build: NewBuild): Promise<BuildRow> {
  return only(await tx.run<BuildRow>(insert, [...valuesOf(build), holdS]));
}

// It has ended as it begins: there is nothing to do, and nobody to wait for.
const insertEnded = sql(`
  INSERT INTO builds (id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id, steps,
    status, phase, image_id, note, kept, held_until, finished_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'succeeded', 'reused', $11, $12, false,
    clock_timestamp(), clock_timestamp())
  RETURNING ${columns}`);
const refresh = sql(`
  UPDATE builds SET kept_at = clock_timestamp(), surplus = false
  WHERE id = $1 AND kept AND status = 'succeeded' RETURNING id`);

/** Undefined where the image was removed meanwhile. */
export async function insertReuse(
  tx: Runner,
  build: NewBuild,
  { image, note, keep }: { image: string; note: string; keep: number },
): Promise<BuildRow | undefined> {
  if ((await tx.run(refresh, [image])).length === 0) return undefined;
  await markSurplus(tx, build.host_id, build.family, keep);
  return only(await tx.run<BuildRow>(insertEnded, [...valuesOf(build), image, note]));
}

function valuesOf(build: NewBuild): unknown[] {
  const { id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id } = build;
  const steps = JSON.stringify(build.steps);
  return [id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id, steps];
}

// The newest are kept whoever uses them; older ones go when nobody does.
const surplus = sql(`
  UPDATE builds SET surplus = true WHERE NOT surplus AND id IN (
    SELECT id FROM builds WHERE host_id = $1 AND family = $2 AND kept AND status = 'succeeded'
    ORDER BY kept_at DESC, seq DESC OFFSET $3)`);

export async function markSurplus(
  tx: Runner,
  hostId: string,
  family: string,
  keep: number,
): Promise<void> {
  await tx.run(surplus, [hostId, family, keep]);
}

const move = sql(`UPDATE builds SET host_id = $2, build_key = $3 WHERE id = $1`);

/** To another host, before any host has taken it. */
export async function moveBuild(
  db: Runner,
  id: string,
  hostId: string,
  buildKey: string,
): Promise<void> {
  await db.run(move, [id, hostId, buildKey]);
}

const drop = sql('DELETE FROM builds WHERE id = $1');

/** One that every host refused, so that it never was. */
export async function dropBuild(db: Runner, id: string): Promise<void> {
  await db.run(drop, [id]);
}

const same = sql(`
  SELECT ${columns} FROM builds
  WHERE build_key = ANY($2) AND kept AND status = 'succeeded' AND account_id IS NOT DISTINCT FROM $1
  ORDER BY kept_at DESC LIMIT 10`);

/** Builds of the same thing whose images are held. */
export async function sameBuilds(
  db: Runner,
  accountId: string | null,
  keys: readonly string[],
): Promise<BuildRow[]> {
  return db.run(same, [accountId, keys]);
}

const busy = sql(`SELECT host_id FROM builds WHERE status = 'running'`);

/** Hosts that build. */
export async function buildingHosts(db: Runner): Promise<Set<string>> {
  return new Set((await db.run<{ host_id: string }>(busy, [])).map(({ host_id }) => host_id));
}

export interface LaunchRow {
  image_id: string;
  host_id: string;
  parent: string;
  build_key: string;
}

const launch = sql(`
  SELECT b.image_id, b.host_id, b.parent, b.build_key FROM builds b JOIN builds image ON image.id = b.image_id
  WHERE b.doc_digest = $2 AND b.account_id IS NOT DISTINCT FROM $1 AND b.status = 'succeeded'
    AND image.kept
  ORDER BY b.seq DESC LIMIT 1`);

const latest = sql(`
  SELECT ${columns} FROM builds WHERE doc_digest = $2 AND account_id IS NOT DISTINCT FROM $1
  ORDER BY seq DESC LIMIT 1`);

export interface Making {
  readonly latest: BuildRow | undefined;
  readonly image: LaunchRow | undefined;
}

/** The latest build of this very document, and its newest image. */
export async function makingOf(
  db: Runner,
  accountId: string | null,
  docDigest: string,
): Promise<Making> {
  // In this order: a build that ends in between is seen by its image. The other way neither would be seen.
  const [build] = await db.run<BuildRow>(latest, [accountId, docDigest]);
  const [image] = await db.run<LaunchRow>(launch, [accountId, docDigest]);
  return { latest: build, image };
}

const anyOfFamily = sql(`
  SELECT FROM builds WHERE account_id = $1 AND family = $2 AND status = 'succeeded' LIMIT 1`);

export async function isFamilyBuilt(
  db: Runner,
  accountId: string,
  family: string,
): Promise<boolean> {
  return (await db.run(anyOfFamily, [accountId, family])).length > 0;
}

const hold = sql('SELECT FROM builds WHERE id = $1 AND kept FOR SHARE');

/** Whether the image is held; it is not removed before the transaction ends. */
export async function holdImage(tx: Runner, id: string): Promise<boolean> {
  return (await tx.run(hold, [id])).length > 0;
}

const pool = sql(`
  SELECT coalesce(sum(disk_gb), 0)::int AS disk_gb FROM builds WHERE account_id = $1 AND kept`);

/** What kept builds take of the account's storage pool. */
export async function keptDiskGb(db: Runner, accountId: string): Promise<number> {
  return only(await db.run<{ disk_gb: number }>(pool, [accountId])).disk_gb;
}
