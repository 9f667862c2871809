// Admission: whether the plan allows more. Counted inside the transaction that takes the room, with the
// account's row locked, so that a burst of calls never exceeds a ceiling (Part 2 AccountQuota).

import { Refusal } from '@cubicle/contract/errors.ts';
import { keptDiskGb } from '../db/builds.ts';
import { accountFootprints, countNeverIdle } from '../db/computers.ts';
import type { Runner } from '../db/database.ts';
import { planOfAccount } from '../db/plans.ts';

export interface Shape {
  readonly cpu: number;
  readonly ram_mb: number;
  readonly disk_gb: number;
}

const nothing: Shape = { cpu: 0, ram_mb: 0, disk_gb: 0 };

export interface Wish {
  /** One more computer of this shape is kept. */
  readonly keep?: Shape;
  /** A kept computer changes from one shape to another. */
  readonly change?: { readonly from: Shape; readonly to: Shape };
  /** One more computer of this shape runs. */
  readonly run?: Shape;
}

export async function admit(tx: Runner, accountId: string, wish: Wish): Promise<void> {
  const plan = await planOfAccount(tx, accountId);
  if (plan === undefined) throw new Error('an account without a plan row');
  const now = await accountFootprints(tx, accountId);
  const { keep, change, run } = wish;
  const shape = keep ?? change?.to;
  if (shape !== undefined) {
    // A change refuses only what it enlarges: reductions and unchanged overages pass (rule 6).
    const from = change?.from ?? nothing;
    each('vCPU per computer', shape.cpu, from.cpu, plan.max_vcpu);
    each('MB of memory per computer', shape.ram_mb, from.ram_mb, plan.max_ram_mb);
    each('GB of disk per computer', shape.disk_gb, from.disk_gb, plan.max_disk_gb);
    total('vCPU', now.vcpu, shape.cpu - from.cpu, plan.vcpu_pool);
    // What the account's own templates boot from takes room too (rule 5).
    const disk = now.disk_gb + (await keptDiskGb(tx, accountId));
    total('GB of disk', disk, shape.disk_gb - from.disk_gb, plan.disk_pool_gb);
  }
  if (keep !== undefined) total('computers', now.kept, 1, plan.max_computers);
  if (run !== undefined) {
    total('running computers', now.active, 1, plan.max_computers);
    total('running vCPU', now.active_vcpu, run.cpu, plan.vcpu_pool);
    total('MB of running memory', now.active_ram_mb, run.ram_mb, plan.ram_pool_mb);
  }
}

/** A computer that is never suspended when idle takes its memory for good, so plans bound their number. */
export async function admitNeverIdle(tx: Runner, accountId: string, id: string): Promise<void> {
  const plan = await planOfAccount(tx, accountId);
  const others = await countNeverIdle(tx, accountId, id);
  const most = plan?.never_idle ?? 0;
  total('computers that never suspend when idle', others, 1, most);
}

function each(what: string, asked: number, before: number, most: number): void {
  if (asked > most && asked > before) {
    throw new Refusal('quota_exceeded', {
      problem: `The plan allows ${most} ${what}; this asks for ${asked}.`,
    });
  }
}

function total(what: string, used: number, more: number, most: number): void {
  if (more > 0 && used + more > most) {
    throw new Refusal('quota_exceeded', {
      problem: `The plan allows ${most} ${what}; ${used} are in use and this needs ${more} more.`,
    });
  }
}
