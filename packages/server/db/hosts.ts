// The hosts of the fleet in SQL.

import { type Runner, sql } from './database.ts';

export interface HostRow {
  id: string;
  address: string;
  cpu: number;
  ram_mb: number;
  disk_gb: number;
}

const all = sql(`
  SELECT id, address, cpu, ram_mb, disk_gb FROM hosts WHERE retired_at IS NULL ORDER BY created_at, id`);

export async function listHosts(db: Runner): Promise<HostRow[]> {
  return db.run(all, []);
}

const upsert = sql(`
  INSERT INTO hosts (id, address, cpu, ram_mb, disk_gb) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, cpu = excluded.cpu,
    ram_mb = excluded.ram_mb, disk_gb = excluded.disk_gb, retired_at = NULL`);

export async function registerHost(db: Runner, host: HostRow): Promise<void> {
  await db.run(upsert, [host.id, host.address, host.cpu, host.ram_mb, host.disk_gb]);
}

// Placement looks at sums over a host's computers, so two placements on one host take turns.
const lock = sql('SELECT FROM hosts WHERE id = $1 FOR NO KEY UPDATE');

export async function lockHost(tx: Runner, id: string): Promise<void> {
  await tx.run(lock, [id]);
}

const retire = sql(`
  UPDATE hosts SET retired_at = clock_timestamp() WHERE id = $1 AND retired_at IS NULL RETURNING id`);
const endComputers = sql(`
  UPDATE computers SET state = 'deleted', active = false, deleted_at = clock_timestamp()
  WHERE host_id = $1 AND state IN ('live', 'deleting') RETURNING id`);
const endOperations = sql(`
  UPDATE operations SET state = 'failed', error_code = 'computer_gone',
    error_message = 'The computer’s host was given up.',
    updated_at = statement_timestamp(), finished_at = statement_timestamp()
  WHERE computer_id = ANY($1) AND state IN ('pending', 'running')`);

const endBuilds = sql(`
  UPDATE builds SET kept = false, surplus = false, removed_at = clock_timestamp(),
    moves = moves + 1, updated_at = clock_timestamp(), finished_at = coalesce(finished_at, clock_timestamp()),
    status = CASE status WHEN 'running' THEN 'failed' ELSE status END,
    phase = CASE status WHEN 'running' THEN 'failed' ELSE phase END,
    note = CASE status WHEN 'running' THEN 'The build’s host was given up.' ELSE note END,
    error = CASE status WHEN 'running' THEN 'The build’s host was given up.' ELSE error END
  WHERE host_id = $1 AND kept`);

/** Returns the computers that went with it; undefined when there is no such host. */
export async function retireHost(tx: Runner, id: string): Promise<string[] | undefined> {
  if ((await tx.run(retire, [id])).length === 0) return undefined;
  const ended = (await tx.run<{ id: string }>(endComputers, [id])).map((row) => row.id);
  await tx.run(endOperations, [ended]);
  await tx.run(endBuilds, [id]);
  return ended;
}
