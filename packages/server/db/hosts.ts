// The hosts of the fleet in SQL.

import { type Runner, sql } from './database.ts';

export interface HostRow {
  id: string;
  address: string;
  cpu: number;
  ram_mb: number;
  disk_gb: number;
}

const all = sql('SELECT id, address, cpu, ram_mb, disk_gb FROM hosts ORDER BY created_at, id');

export async function listHosts(db: Runner): Promise<HostRow[]> {
  return db.run(all, []);
}

const upsert = sql(`
  INSERT INTO hosts (id, address, cpu, ram_mb, disk_gb) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (id) DO UPDATE SET address = excluded.address, cpu = excluded.cpu,
    ram_mb = excluded.ram_mb, disk_gb = excluded.disk_gb`);

export async function registerHost(db: Runner, host: HostRow): Promise<void> {
  await db.run(upsert, [host.id, host.address, host.cpu, host.ram_mb, host.disk_gb]);
}

// Placement looks at sums over a host's computers, so two placements on one host take turns.
const lock = sql('SELECT FROM hosts WHERE id = $1 FOR NO KEY UPDATE');

export async function lockHost(tx: Runner, id: string): Promise<void> {
  await tx.run(lock, [id]);
}
