// Plans and their quotas: data that the operator changes in one place, the table `plans`.

import { type Runner, sql } from './database.ts';

/** The figures of a plan by the names of their columns, which are the API's own names. */
export const planFigures = [
  'rate_units',
  'max_computers',
  'vcpu_pool',
  'ram_pool_mb',
  'disk_pool_gb',
  'snapshot_storage_bytes',
  'max_vcpu',
  'max_ram_mb',
  'max_disk_gb',
  'never_idle',
  'max_webhooks',
  'builds_per_day',
] as const;
export type PlanFigure = (typeof planFigures)[number];

export type PlanRow = { id: string; label: string } & Record<PlanFigure, number>;

const columns = `id, label, ${planFigures.join(', ')}`;

const ofAccount = sql(`
  SELECT ${columns
    .split(', ')
    .map((column) => `p.${column}`)
    .join(', ')}
  FROM accounts a JOIN plans p ON p.id = a.plan_id WHERE a.id = $1`);

export async function planOfAccount(db: Runner, accountId: string): Promise<PlanRow | undefined> {
  return (await db.run<PlanRow>(ofAccount, [accountId]))[0];
}

const all = sql(`SELECT ${columns} FROM plans ORDER BY rank`);

export async function listPlans(db: Runner): Promise<PlanRow[]> {
  return db.run(all, []);
}

const update = sql(`
  UPDATE plans SET label = coalesce($2, label),
    ${planFigures.map((column, i) => `${column} = coalesce($${i + 3}, ${column})`).join(', ')}
  WHERE id = $1 RETURNING ${columns}`);

export async function updatePlan(
  tx: Runner,
  id: string,
  change: { label?: string | undefined } & Partial<Record<PlanFigure, number>>,
): Promise<PlanRow | undefined> {
  const values = planFigures.map((figure) => change[figure] ?? null);
  return (await tx.run<PlanRow>(update, [id, change.label ?? null, ...values]))[0];
}
