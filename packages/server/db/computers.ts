// Computers as asked for, in SQL. Reads on behalf of a caller are bounded by account and workspace.

import { type ComputerSecrets, secretsColumn } from './computer-secrets.ts';
import { only, type Runner, sql } from './database.ts';
import type { Scope } from './scope.ts';

export interface ComputerRow {
  id: string;
  account_id: string;
  workspace_id: string | null;
  host_id: string;
  name: string;
  template: string;
  os: string;
  desktop: string | null;
  cpu: number;
  ram_mb: number;
  disk_gb: number;
  resolution: string;
  idle_suspend_min: number | null;
  state: 'live' | 'deleting' | 'deleted' | 'lost' | 'void';
  unheard: boolean;
  active: boolean;
  started_at: Date | null;
  suspended_at: Date | null;
  build_source: string | null;
  /** The build whose image it was made from; null for one of the host's own. */
  build_id: string | null;
  build_failed: string | null;
  rotation: number;
  secrets: ComputerSecrets | null;
  created_at: Date;
  deleted_at: Date | null;
  lost_at: Date | null;
}

const columns = `id, account_id, workspace_id, host_id, name, template, os, desktop, cpu, ram_mb, disk_gb,
  resolution, idle_suspend_min, state, unheard, active, started_at, suspended_at, build_source, build_id, build_failed, rotation,
  created_at, deleted_at, lost_at, ${secretsColumn}`;
const visible = 'account_id = $1 AND ($2::text IS NULL OR workspace_id = $2)';

const find = sql(
  `SELECT ${columns} FROM computers WHERE ${visible} AND id = $3 AND state IN ('live', 'deleting')`,
);

export async function findComputer(
  db: Runner,
  scope: Scope,
  id: string,
): Promise<ComputerRow | undefined> {
  return (await db.run<ComputerRow>(find, [scope.accountId, scope.workspaceId, id]))[0];
}

const findForChange = sql(
  `SELECT ${columns} FROM computers WHERE ${visible} AND id = $3 AND state IN ('live', 'deleting') FOR UPDATE`,
);

export async function lockComputer(
  tx: Runner,
  scope: Scope,
  id: string,
): Promise<ComputerRow | undefined> {
  return (await tx.run<ComputerRow>(findForChange, [scope.accountId, scope.workspaceId, id]))[0];
}

const unlocked = sql(`SELECT ${columns} FROM computers WHERE id = $1`);

/** For work of the service's own, which no caller waits for. */
export async function computerById(db: Runner, id: string): Promise<ComputerRow | undefined> {
  return (await db.run<ComputerRow>(unlocked, [id]))[0];
}

const byId = sql(`SELECT ${columns} FROM computers WHERE id = $1 FOR UPDATE`);

/** For settling an operation, which acts for the service and not for a caller. */
export async function lockComputerById(tx: Runner, id: string): Promise<ComputerRow | undefined> {
  return (await tx.run<ComputerRow>(byId, [id]))[0];
}

const list = sql(`
  SELECT ${columns} FROM computers
  WHERE ${visible} AND state = ANY($3::text[])
    AND ($4::text IS NULL OR workspace_id IS NOT DISTINCT FROM nullif($4, ''))
  ORDER BY seq`);

/** `workspace`: null for any, '' for those in none. */
export async function listComputers(
  db: Runner,
  scope: Scope,
  states: readonly string[],
  workspace: string | null,
): Promise<ComputerRow[]> {
  return db.run(list, [scope.accountId, scope.workspaceId, states, workspace]);
}

export type NewComputer = Pick<
  ComputerRow,
  | 'id'
  | 'account_id'
  | 'workspace_id'
  | 'host_id'
  | 'name'
  | 'template'
  | 'desktop'
  | 'cpu'
  | 'ram_mb'
  | 'disk_gb'
  | 'resolution'
  | 'active'
  | 'build_source'
  | 'build_id'
>;

const insert = sql(`
  INSERT INTO computers (id, account_id, workspace_id, host_id, name, template, desktop, cpu, ram_mb,
    disk_gb, resolution, active, started_at, build_source, build_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
    CASE WHEN $12 THEN clock_timestamp() END, $13, $14)
  RETURNING ${columns}`);

export async function insertComputer(tx: Runner, computer: NewComputer): Promise<ComputerRow> {
  const values = [
    computer.id,
    computer.account_id,
    computer.workspace_id,
    computer.host_id,
    computer.name,
    computer.template,
    computer.desktop,
    computer.cpu,
    computer.ram_mb,
    computer.disk_gb,
    computer.resolution,
    computer.active,
    computer.build_source,
    computer.build_id,
  ];
  return only(await tx.run<ComputerRow>(insert, values));
}

const neverWas = sql("UPDATE computers SET state = 'void', active = false WHERE id = $1");

/** One that never came to be. Its row stays for a while, so that what its host may have of it is known. */
export async function voidComputer(tx: Runner, id: string): Promise<void> {
  await tx.run(neverWas, [id]);
}

const trimVoid = sql(`
  DELETE FROM computers WHERE state = 'void' AND created_at < clock_timestamp() - interval '7 days'`);

export async function trimVoidComputers(db: Runner): Promise<void> {
  await db.run(trimVoid, []);
}

const setUnheard = sql('UPDATE computers SET unheard = $2 WHERE id = $1 AND unheard <> $2');

export async function setComputerUnheard(tx: Runner, id: string, unheard: boolean): Promise<void> {
  await tx.run(setUnheard, [id, unheard]);
}

const ended = sql("SELECT id FROM computers WHERE id = ANY($1) AND state IN ('deleted', 'void')");

/** Of these, those that no longer are or never were. */
export async function endedComputers(db: Runner, ids: readonly string[]): Promise<string[]> {
  return (await db.run<{ id: string }>(ended, [ids])).map(({ id }) => id);
}

const since = 'CASE WHEN $3 THEN coalesce(suspended_at, clock_timestamp()) END';
const setActive = sql(`
  UPDATE computers SET active = $2, suspended_at = ${since},
    started_at = CASE WHEN $2 THEN clock_timestamp() ELSE started_at END
  WHERE id = $1`);

export async function setComputerActive(
  tx: Runner,
  id: string,
  active: boolean,
  suspended = false,
): Promise<void> {
  await tx.run(setActive, [id, active, suspended]);
}

const change = sql(`
  UPDATE computers SET name = coalesce($2, name), cpu = coalesce($3, cpu), ram_mb = coalesce($4, ram_mb),
    disk_gb = coalesce($5, disk_gb)
  WHERE id = $1 RETURNING ${columns}`);

export async function changeComputer(
  tx: Runner,
  id: string,
  wish: {
    name?: string | undefined;
    cpu?: number | undefined;
    ram_mb?: number | undefined;
    disk_gb?: number | undefined;
  },
): Promise<ComputerRow> {
  const values = [
    id,
    wish.name ?? null,
    wish.cpu ?? null,
    wish.ram_mb ?? null,
    wish.disk_gb ?? null,
  ];
  return only(await tx.run<ComputerRow>(change, values));
}

const setIdle = sql(
  `UPDATE computers SET idle_suspend_min = $2 WHERE id = $1 RETURNING ${columns}`,
);

export async function setComputerIdle(
  tx: Runner,
  id: string,
  minutes: number | null,
): Promise<ComputerRow> {
  return only(await tx.run<ComputerRow>(setIdle, [id, minutes]));
}

const toWorkspace = sql(`
  UPDATE computers SET workspace_id = $2, rotation = rotation + 1 WHERE id = $1 RETURNING ${columns}`);

export async function moveComputerToWorkspace(
  tx: Runner,
  id: string,
  workspaceId: string | null,
): Promise<ComputerRow> {
  return only(await tx.run<ComputerRow>(toWorkspace, [id, workspaceId]));
}

const rotate = sql('UPDATE computers SET rotation = rotation + 1 WHERE id = $1');

export async function rotateCredentials(tx: Runner, id: string): Promise<void> {
  await tx.run(rotate, [id]);
}

const end = sql(`
  UPDATE computers SET state = $2, active = active AND $2 IN ('live', 'deleting'),
    deleted_at = CASE WHEN $2 = 'deleted' THEN clock_timestamp() END,
    lost_at = CASE WHEN $2 = 'lost' THEN clock_timestamp() END
  WHERE id = $1`);

export async function setComputerState(
  tx: Runner,
  id: string,
  state: 'live' | 'deleting' | 'deleted' | 'lost',
): Promise<void> {
  await tx.run(end, [id, state]);
}

const failBuild = sql('UPDATE computers SET build_failed = $2 WHERE id = $1');

export async function setBuildFailed(tx: Runner, id: string, why: string): Promise<void> {
  await tx.run(failBuild, [id, why]);
}

export interface Footprints {
  kept: number;
  vcpu: number;
  disk_gb: number;
  active: number;
  active_vcpu: number;
  active_ram_mb: number;
}

const sums = sql(`
  SELECT count(*)::int AS kept, coalesce(sum(cpu), 0)::int AS vcpu, coalesce(sum(disk_gb), 0)::int AS disk_gb,
    count(*) FILTER (WHERE active)::int AS active,
    coalesce(sum(cpu) FILTER (WHERE active), 0)::int AS active_vcpu,
    coalesce(sum(ram_mb) FILTER (WHERE active), 0)::int AS active_ram_mb
  FROM computers WHERE account_id = $1 AND state IN ('live', 'deleting')`);

/** What admission counts of computers. */
export async function accountFootprints(db: Runner, accountId: string): Promise<Footprints> {
  return only(await db.run<Footprints>(sums, [accountId]));
}

const neverIdle = sql(`
  SELECT count(*)::int AS count FROM computers
  WHERE account_id = $1 AND idle_suspend_min = 0 AND id <> $2 AND state IN ('live', 'deleting')`);

/** How many others never suspend when idle. */
export async function countNeverIdle(db: Runner, accountId: string, id: string): Promise<number> {
  return only(await db.run<{ count: number }>(neverIdle, [accountId, id])).count;
}

const inWorkspace = sql(`
  SELECT count(*)::int AS count FROM computers
  WHERE account_id = $1 AND workspace_id = $2 AND state IN ('live', 'deleting')`);

export async function countInWorkspace(
  db: Runner,
  accountId: string,
  workspaceId: string,
): Promise<number> {
  return only(await db.run<{ count: number }>(inWorkspace, [accountId, workspaceId])).count;
}

const onHost = sql(`
  SELECT ${columns} FROM computers WHERE host_id = $1 AND state IN ('live', 'deleting')
    AND NOT EXISTS (SELECT FROM operations o WHERE o.computer_id = computers.id
      AND o.state IN ('pending', 'running'))`);

/** Computers of a host that nothing is being done to. */
export async function settledComputersOn(db: Runner, hostId: string): Promise<ComputerRow[]> {
  return db.run(onHost, [hostId]);
}

const usedOnHost = sql(`
  SELECT coalesce(sum(ram_mb) FILTER (WHERE active), 0)::int AS ram_mb, coalesce(sum(disk_gb), 0)::int AS disk_gb
  FROM computers WHERE host_id = $1 AND state IN ('live', 'deleting')`);

export async function usedOf(
  db: Runner,
  hostId: string,
): Promise<{ ram_mb: number; disk_gb: number }> {
  return only(await db.run<{ ram_mb: number; disk_gb: number }>(usedOnHost, [hostId]));
}

const hostOf = sql('SELECT host_id FROM computers WHERE id = $1');

export async function hostOfComputer(db: Runner, id: string): Promise<string | undefined> {
  return (await db.run<{ host_id: string }>(hostOf, [id]))[0]?.host_id;
}

const beingChanged = sql(
  "SELECT FROM operations WHERE computer_id = $1 AND state IN ('pending', 'running')",
);

export async function isBeingChanged(db: Runner, id: string): Promise<boolean> {
  return (await db.run(beingChanged, [id])).length > 0;
}

// Only if nothing has happened to it since it was read. What was read has no microseconds.
const observe = sql(`
  UPDATE computers SET active = $2, suspended_at = ${since}
  WHERE id = $1 AND active <> $2 AND date_trunc('milliseconds', started_at) IS NOT DISTINCT FROM $4
    AND NOT EXISTS (SELECT FROM operations o WHERE o.computer_id = $1
      AND (o.state IN ('pending', 'running') OR o.updated_at > clock_timestamp() - interval '5 seconds'))`);

export async function observeActive(
  db: Runner,
  row: ComputerRow,
  active: boolean,
  suspended: boolean,
): Promise<void> {
  await db.run(observe, [row.id, active, suspended, row.started_at]);
}

// Creates and clones whose outcome was never heard are left out (Part 2 AccountQuota 5).
const shapes = sql(`
  SELECT cpu, ram_mb, disk_gb, active FROM computers
  WHERE account_id = $1 AND state IN ('live', 'deleting') AND NOT unheard`);

export async function shapesOfAccount(
  db: Runner,
  accountId: string,
): Promise<Pick<ComputerRow, 'cpu' | 'ram_mb' | 'disk_gb' | 'active'>[]> {
  return db.run(shapes, [accountId]);
}
