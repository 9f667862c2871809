// Named sizes that a computer can be made as.

import type { Size } from '@cubicle/contract/resources/sizes.ts';
import type { Database } from '../db/database.ts';
import { listPlans, type PlanRow, planOfAccount } from '../db/plans.ts';
import type { Authority } from './authority.ts';

type NamedSize = Omit<Size, 'allowed' | 'cheapest_plan'>;

export const sizes: readonly NamedSize[] = [
  { id: 'small', label: 'Small', template: 'base', cpu: 1, ram_mb: 1_024, disk_gb: 10 },
  { id: 'medium', label: 'Medium', template: 'base', cpu: 2, ram_mb: 4_096, disk_gb: 20 },
  { id: 'large', label: 'Large', template: 'base', cpu: 4, ram_mb: 8_192, disk_gb: 40 },
  { id: 'xlarge', label: 'Extra large', template: 'base', cpu: 8, ram_mb: 16_384, disk_gb: 80 },
];

export class Catalog {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async sizes({ accountId }: Authority): Promise<Size[]> {
    const [plan, plans] = await Promise.all([
      planOfAccount(this.#database, accountId),
      listPlans(this.#database),
    ]);
    return sizes.map((size) => ({
      ...size,
      allowed: plan !== undefined && admits(plan, size),
      cheapest_plan: plans.find((other) => admits(other, size))?.id ?? null,
    }));
  }
}

export function admits(
  plan: PlanRow,
  shape: { cpu: number; ram_mb: number; disk_gb: number },
): boolean {
  return (
    shape.cpu <= plan.max_vcpu &&
    shape.ram_mb <= plan.max_ram_mb &&
    shape.disk_gb <= plan.max_disk_gb
  );
}
