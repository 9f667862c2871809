// Whether the plan allows another build: Part 4 Builds 8 and 9. Counted inside the transaction that takes it,
// with the account's row locked.

import { Refusal } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { countRequests, freeIn } from '../db/build-requests.ts';
import { keptDiskGb } from '../db/builds.ts';
import { accountFootprints } from '../db/computers.ts';
import type { Runner } from '../db/database.ts';
import { type PlanRow, planOfAccount } from '../db/plans.ts';

/** Another request, whatever comes of it. */
export async function requireRequest(tx: Runner, accountId: string): Promise<void> {
  const limit = (await planOf(tx, accountId)).builds_per_day * limits.buildRequests;
  const { requests: used } = await countRequests(tx, accountId);
  if (used < limit) return;
  const seconds = String(await freeIn(tx, accountId, false, limit));
  throw new Refusal('build_requests_spent', { used, limit }, {}, { 'Retry-After': seconds });
}

/** Another build. */
export async function requireAllowance(tx: Runner, accountId: string): Promise<void> {
  const limit = (await planOf(tx, accountId)).builds_per_day;
  if (limit === 0) throw new Refusal('builds_not_in_plan');
  await requireRequest(tx, accountId);
  const { builds: used } = await countRequests(tx, accountId);
  if (used < limit) return;
  const seconds = String(await freeIn(tx, accountId, true, limit));
  throw new Refusal('build_allowance_spent', { used, limit }, {}, { 'Retry-After': seconds });
}

/** Room for what another build keeps. */
export async function requirePool(tx: Runner, accountId: string, disk: number): Promise<void> {
  const { disk_pool_gb: pool } = await planOf(tx, accountId);
  const { disk_gb: computers } = await accountFootprints(tx, accountId);
  const builds = await keptDiskGb(tx, accountId);
  if (computers + builds + disk <= pool) return;
  throw new Refusal('build_pool_exceeded', { pool, computers, builds, disk });
}

async function planOf(tx: Runner, accountId: string): Promise<PlanRow> {
  const plan = await planOfAccount(tx, accountId);
  if (plan === undefined) throw new Error('an account without a plan row');
  return plan;
}
