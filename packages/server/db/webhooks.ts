// Webhook subscriptions in SQL. Those on behalf of a caller are bounded by account and workspace. Times are
// the caller's, so that a test can pass a day.

import { only, type Runner, sql } from './database.ts';
import type { Scope } from './scope.ts';

export type DisabledReason = 'customer' | 'failing' | 'plan';

export interface WebhookRow {
  id: string;
  account_id: string;
  workspace_id: string | null;
  url: string;
  description: string;
  events: string[];
  computers: string[];
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  disabled_at: Date | null;
  last_success_at: Date | null;
  last_failure_at: Date | null;
  last_status: number | null;
  created_at: Date;
  updated_at: Date;
}

const columns = `id, account_id, workspace_id, url, description, events, computers, enabled, disabled_reason,
  disabled_at, last_success_at, last_failure_at, last_status, created_at, updated_at`;
const visible = 'account_id = $1 AND ($2::text IS NULL OR workspace_id = $2)';

const list = sql(`SELECT ${columns} FROM webhooks WHERE ${visible} ORDER BY seq`);

export async function listWebhooks(db: Runner, scope: Scope): Promise<WebhookRow[]> {
  return db.run(list, [scope.accountId, scope.workspaceId]);
}

const find = sql(`SELECT ${columns} FROM webhooks WHERE ${visible} AND id = $3`);
const findForChange = sql(`${find.text} FOR NO KEY UPDATE`);
const findForDelete = sql(`${find.text} FOR UPDATE`);

export async function findWebhook(
  db: Runner,
  scope: Scope,
  id: string,
): Promise<WebhookRow | undefined> {
  return (await db.run<WebhookRow>(find, [scope.accountId, scope.workspaceId, id]))[0];
}

export async function lockWebhook(
  tx: Runner,
  scope: Scope,
  id: string,
): Promise<WebhookRow | undefined> {
  return (await tx.run<WebhookRow>(findForChange, [scope.accountId, scope.workspaceId, id]))[0];
}

const count = sql('SELECT count(*) AS count FROM webhooks WHERE account_id = $1');

/** Of the whole account. */
export async function countWebhooks(tx: Runner, accountId: string): Promise<number> {
  return only(await tx.run<{ count: number }>(count, [accountId])).count;
}

export type NewWebhook = Pick<
  WebhookRow,
  'id' | 'account_id' | 'workspace_id' | 'url' | 'description' | 'events' | 'computers' | 'enabled'
> & { readonly secret: Buffer };

const insert = sql(`
  INSERT INTO webhooks (id, account_id, workspace_id, url, description, events, computers, enabled,
    disabled_reason, disabled_at, enabled_at, secret, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8,
    CASE WHEN $8 THEN NULL ELSE 'customer' END, CASE WHEN $8 THEN NULL ELSE $10::timestamptz END,
    $10, $9, $10, $10)
  RETURNING ${columns}`);
const insertLane = sql('INSERT INTO webhook_lanes (webhook_id) VALUES ($1)');

export async function insertWebhook(tx: Runner, wish: NewWebhook, now: Date): Promise<WebhookRow> {
  const { id, account_id, workspace_id, url, description, events, computers, enabled } = wish;
  const filters = [events, computers];
  const values = [id, account_id, workspace_id, url, description, ...filters, enabled];
  const row = only(await tx.run<WebhookRow>(insert, [...values, wish.secret, now]));
  await tx.run(insertLane, [id]);
  return row;
}

export type WebhookFields = Partial<
  Pick<WebhookRow, 'url' | 'description' | 'events' | 'computers'>
>;

const update = sql(`
  UPDATE webhooks SET url = coalesce($2, url), description = coalesce($3, description),
    events = coalesce($4, events), computers = coalesce($5, computers), updated_at = $6
  WHERE id = $1 RETURNING ${columns}`);

export async function updateWebhook(
  tx: Runner,
  id: string,
  { url, description, events, computers }: WebhookFields,
  now: Date,
): Promise<WebhookRow> {
  const values = [url, description, events, computers].map((value) => value ?? null);
  return only(await tx.run<WebhookRow>(update, [id, ...values, now]));
}

const enable = sql(`
  UPDATE webhooks SET enabled = true, disabled_reason = NULL, disabled_at = NULL,
    enabled_at = $2, updated_at = $2
  WHERE id = ANY($1) AND NOT enabled`);

/** A fresh start for those that are disabled. */
export async function enableWebhooks(tx: Runner, ids: readonly string[], now: Date): Promise<void> {
  await tx.run(enable, [ids, now]);
}

const disable = sql(`
  UPDATE webhooks SET enabled = false, disabled_reason = $2, disabled_at = $3, updated_at = $3
  WHERE id = ANY($1) AND disabled_reason IS DISTINCT FROM $2`);

export async function disableWebhooks(
  tx: Runner,
  ids: readonly string[],
  reason: DisabledReason,
  now: Date,
): Promise<void> {
  await tx.run(disable, [ids, reason, now]);
}

const rotate = sql(`
  UPDATE webhooks SET previous_secret = secret, previous_until = $3, secret = $2, updated_at = $4
  WHERE id = $1 RETURNING ${columns}`);

/** The secret so far goes on signing until `previousUntil`; one before it no longer does. */
export async function rotateSecret(
  tx: Runner,
  id: string,
  secret: Buffer,
  previousUntil: Date,
  now: Date,
): Promise<WebhookRow> {
  return only(await tx.run<WebhookRow>(rotate, [id, secret, previousUntil, now]));
}

const confined = sql(`
  SELECT id FROM webhooks WHERE account_id = $1 AND workspace_id = $2 ORDER BY id FOR UPDATE`);
const removeLanes = sql('DELETE FROM webhook_lanes WHERE webhook_id = ANY($1)');
const remove = sql('DELETE FROM webhooks WHERE id = ANY($1)');
const removeDeliveries = sql(`
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE webhook_id = $1 LIMIT $2)
  RETURNING id`);
const noteRemains = sql('INSERT INTO webhook_remains (webhook_id) VALUES ($1)');

/** Records that one statement removes; more are removed in the background, seen by nobody. */
const removedAtOnce = 5_000;

export async function deleteWebhook(tx: Runner, scope: Scope, id: string): Promise<boolean> {
  const found = await tx.run(findForDelete, [scope.accountId, scope.workspaceId, id]);
  if (found.length === 0) return false;
  await deleteLocked(tx, [id]);
  return true;
}

export async function deleteConfinedWebhooks(
  tx: Runner,
  accountId: string,
  workspaceId: string,
): Promise<void> {
  const rows = await tx.run<{ id: string }>(confined, [accountId, workspaceId]);
  if (rows.length > 0)
    await deleteLocked(
      tx,
      rows.map(({ id }) => id),
    );
}

async function deleteLocked(tx: Runner, ids: readonly string[]): Promise<void> {
  await tx.run(removeLanes, [ids]);
  for (const id of ids) {
    const removed = await tx.run(removeDeliveries, [id, removedAtOnce]);
    if (removed.length === removedAtOnce) await tx.run(noteRemains, [id]);
  }
  await tx.run(remove, [ids]);
}

const someRemains = sql('SELECT webhook_id FROM webhook_remains LIMIT 1 FOR UPDATE SKIP LOCKED');
const forgetRemains = sql('DELETE FROM webhook_remains WHERE webhook_id = $1');

/** Removes some records of a deleted subscription; false when there are none left of any. */
export async function removeRemains(tx: Runner): Promise<boolean> {
  const [row] = await tx.run<{ webhook_id: string }>(someRemains, []);
  if (row === undefined) return false;
  const removed = await tx.run(removeDeliveries, [row.webhook_id, removedAtOnce]);
  if (removed.length < removedAtOnce) await tx.run(forgetRemains, [row.webhook_id]);
  return true;
}

const ofAccounts = sql(`
  SELECT w.id, w.account_id, w.enabled, w.disabled_reason, p.max_webhooks AS most
  FROM webhooks w JOIN accounts a ON a.id = w.account_id JOIN plans p ON p.id = a.plan_id
  WHERE ($1::text IS NULL OR a.id = $1) AND ($2::text IS NULL OR p.id = $2)
  ORDER BY w.account_id, w.seq`);
const lockAll = sql('SELECT FROM webhooks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE');

/** Part 3: what a plan that ended or came back means, for one account or for all that have the plan. */
export async function applyPlan(
  tx: Runner,
  of: { readonly account: string } | { readonly plan: string },
  now: Date,
): Promise<void> {
  type Row = Pick<WebhookRow, 'id' | 'account_id' | 'enabled' | 'disabled_reason'> & {
    most: number;
  };
  const values = ['account' in of ? of.account : null, 'plan' in of ? of.plan : null];
  const rows = await tx.run<Row>(ofAccounts, values);
  await tx.run(lockAll, [rows.map(({ id }) => id)]);
  const [ended, returning]: [string[], string[]] = [[], []];
  for (const own of Map.groupBy(rows, ({ account_id }) => account_id).values()) {
    const most = own[0]?.most ?? 0;
    const enabled = own.filter((row) => row.enabled);
    if (most === 0) ended.push(...enabled.map(({ id }) => id));
    const waiting = own.filter(({ disabled_reason }) => disabled_reason === 'plan');
    const room = Math.max(0, most - enabled.length);
    returning.push(...waiting.slice(0, room).map(({ id }) => id));
  }
  await disableWebhooks(tx, ended, 'plan', now);
  await enableWebhooks(tx, returning, now);
}
