// What a computer can be made as: the service's templates and its named sizes.

import { hash } from 'node:crypto';
import type { Size, Template } from '@cubicle/contract/resources/sizes.ts';
import type { Database } from '../db/database.ts';
import { listPlans, type PlanRow, planOfAccount } from '../db/plans.ts';
import type { Authority } from './authority.ts';

const templates: readonly Template[] = [
  {
    name: 'base',
    ref: 'system/base@1.0.0',
    label: 'Debian 12 desktop',
    os: 'linux',
    cpu: 2,
    ram_mb: 2_048,
    disk_gb: 10,
  },
  {
    name: 'tiling',
    ref: 'system/tiling@1.0.0',
    label: 'Debian 12 tiling desktop (sway)',
    os: 'linux',
    desktop: 'wayland',
    cpu: 2,
    ram_mb: 2_048,
    disk_gb: 10,
  },
];

type NamedSize = Omit<Size, 'allowed' | 'cheapest_plan'>;

export const sizes: readonly NamedSize[] = [
  { id: 'small', label: 'Small', template: 'base', cpu: 1, ram_mb: 1_024, disk_gb: 10 },
  { id: 'medium', label: 'Medium', template: 'base', cpu: 2, ram_mb: 4_096, disk_gb: 20 },
  { id: 'large', label: 'Large', template: 'base', cpu: 4, ram_mb: 8_192, disk_gb: 40 },
  { id: 'xlarge', label: 'Extra large', template: 'base', cpu: 8, ram_mb: 16_384, disk_gb: 80 },
];

function defaultTemplate(): Template {
  return templates[0] as Template;
}

/** A short name that is none of ours is the default; a reference must be right. */
export function findTemplate(named: string | undefined): Template | undefined {
  if (named === undefined) return defaultTemplate();
  if (!named.includes('/')) {
    return templates.find(({ name }) => name === named) ?? defaultTemplate();
  }
  return templates.find(({ ref }) => ref === named || ref.split('@')[0] === named);
}

/**
 * What a create that has to wait for its image goes on with. It grants nothing: it only says that the
 * caller has asked before, for this template.
 */
export function transferOf(accountId: string, named: string | undefined): string | undefined {
  const name = named === undefined ? undefined : findTemplate(named)?.name;
  if (name === undefined) return undefined;
  return `ttr_${hash('sha256', `${accountId} ${name}`, 'hex').slice(0, 32)}`;
}

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

  async templates({ accountId }: Authority): Promise<Template[]> {
    const plan = await planOfAccount(this.#database, accountId);
    return templates.filter((template) => plan !== undefined && admits(plan, template));
  }
}

function admits(plan: PlanRow, shape: { cpu: number; ram_mb: number; disk_gb: number }): boolean {
  return (
    shape.cpu <= plan.max_vcpu &&
    shape.ram_mb <= plan.max_ram_mb &&
    shape.disk_gb <= plan.max_disk_gb
  );
}
