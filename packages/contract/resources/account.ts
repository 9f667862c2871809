// The account's quota: Part 2 AccountQuota, Part 4 Account.

import { z } from 'zod';
import { costs } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { timestamp } from '../timestamp.ts';

const count = z.int().nonnegative();
/** Null while the inventory of its group is incomplete (rule 1). */
const observed = count.nullable();

const accountQuota = z
  .strictObject({
    scope: z.literal('account'),
    advisory: z.literal(true).describe('An uncached observation, not a reservation.'),
    observed_at: timestamp,
    plan: z.strictObject({ id: z.string(), label: z.string() }),
    limits: z.strictObject({
      max_computers: count,
      vcpu_pool: count,
      ram_pool_mb: count,
      disk_pool_gb: count,
      snapshot_storage_bytes: count,
    }),
    per_computer: z.strictObject({ max_vcpu: count, max_ram_mb: count, max_disk_gb: count }),
    capabilities: z.strictObject({ windows: z.boolean() }),
    complete: z.strictObject({ computers: z.boolean(), snapshots: z.boolean() }),
    usage: z.strictObject({
      kept_computers: observed,
      configured_vcpu: observed,
      configured_disk_gb: observed,
      running_or_reserved_computers: observed,
      running_or_reserved_vcpu: observed,
      running_or_reserved_ram_mb: observed,
      snapshot_storage_bytes: observed,
    }),
    remaining: z.strictObject({
      kept_computers: observed,
      configured_vcpu: observed,
      configured_disk_gb: observed,
      running_or_reserved_ram_mb: observed,
      snapshot_storage_bytes: observed,
    }),
  })
  .meta({ id: 'AccountQuota' });
export type AccountQuota = z.infer<typeof accountQuota>;

export const accountRoutes = defineRoutes({
  getAccount: {
    method: 'GET',
    path: '/account',
    role: 'viewer',
    reach: 'scope',
    cost: costs.accountQuota,
    answer: { status: 200, schema: accountQuota },
    errors: [],
    whileSuspended: true,
    summary: 'Read the account’s quota',
    prose:
      'Limits of the plan, what is used and what remains. A confined key receives the whole account’s sums without any identity. Where part of the inventory did not answer, the answer is still 200 and the fields of that group are null.',
    source: 'Part 4, Account',
  },
});
