// The account's quota: Part 2 AccountQuota.

import type { AccountQuota } from '@cubicle/contract/resources/account.ts';
import type { Database } from '../db/database.ts';
import { type PlanRow, planOfAccount } from '../db/plans.ts';
import type { Authority } from './authority.ts';
import type { Inventory, Observation } from './inventory.ts';

export class Account {
  readonly #database: Database;
  readonly #inventory: Inventory;

  constructor(database: Database, inventory: Inventory) {
    this.#database = database;
    this.#inventory = inventory;
  }

  async quota({ accountId }: Authority): Promise<AccountQuota> {
    const [plan, observation] = await Promise.all([
      planOfAccount(this.#database, accountId),
      this.#inventory.observe(accountId),
    ]);
    if (plan === undefined) throw new Error('an account without a plan row');
    return quotaOf(plan, observation, new Date());
  }
}

/** Rules 1 to 3: an incomplete group is null throughout, what remains never falls below zero. */
export function quotaOf(
  plan: PlanRow,
  { computers, snapshotBytes }: Observation,
  at: Date,
): AccountQuota {
  const active = computers?.filter((computer) => computer.active);
  const usage = {
    kept_computers: computers?.length ?? null,
    configured_vcpu: sum(computers, 'vcpu'),
    configured_disk_gb: sum(computers, 'diskGb'),
    running_or_reserved_computers: active?.length ?? null,
    running_or_reserved_vcpu: sum(active, 'vcpu'),
    running_or_reserved_ram_mb: sum(active, 'ramMb'),
    snapshot_storage_bytes: snapshotBytes ?? null,
  };
  return {
    scope: 'account',
    advisory: true,
    observed_at: at.toISOString(),
    plan: { id: plan.id, label: plan.label },
    limits: {
      max_computers: plan.max_computers,
      vcpu_pool: plan.vcpu_pool,
      ram_pool_mb: plan.ram_pool_mb,
      disk_pool_gb: plan.disk_pool_gb,
      snapshot_storage_bytes: plan.snapshot_storage_bytes,
    },
    per_computer: {
      max_vcpu: plan.max_vcpu,
      max_ram_mb: plan.max_ram_mb,
      max_disk_gb: plan.max_disk_gb,
    },
    // Windows guests are not offered.
    capabilities: { windows: false },
    complete: { computers: computers !== undefined, snapshots: snapshotBytes !== undefined },
    usage,
    remaining: {
      kept_computers: left(plan.max_computers, usage.kept_computers),
      configured_vcpu: left(plan.vcpu_pool, usage.configured_vcpu),
      configured_disk_gb: left(plan.disk_pool_gb, usage.configured_disk_gb),
      running_or_reserved_ram_mb: left(plan.ram_pool_mb, usage.running_or_reserved_ram_mb),
      snapshot_storage_bytes: left(plan.snapshot_storage_bytes, usage.snapshot_storage_bytes),
    },
  };
}

function sum<Field extends string>(
  rows: readonly Record<Field, number>[] | undefined,
  field: Field,
): number | null {
  return rows === undefined ? null : rows.reduce((total, row) => total + row[field], 0);
}

function left(limit: number, used: number | null): number | null {
  return used === null ? null : Math.max(0, limit - used);
}
