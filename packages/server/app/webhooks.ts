// Webhooks: Part 4, Webhooks 1 to 13, and redelivery.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import {
  finishedStates,
  type RedeliveryRange,
  type Webhook,
  type WebhookChange,
  type WebhookCreation,
  type WebhookDelivery,
  type WebhookWithSecret,
} from '@cubicle/contract/resources/webhooks.ts';
import type { Database, Runner } from '../db/database.ts';
import { planOfAccount } from '../db/plans.ts';
import { aboutWebhook } from '../db/sealed-values.ts';
import * as deliveries from '../db/webhook-deliveries.ts';
import * as store from '../db/webhooks.ts';
import { type AddressCheck, AddressRefused } from '../webhooks/address.ts';
import { newSecret, secretText } from '../webhooks/signature.ts';
import { type Authority, changeAs } from './authority.ts';
import { newId } from './secrets.ts';
import type { Vault } from './vault.ts';

export interface WebhooksParts {
  readonly database: Database;
  readonly vault: Vault;
  readonly check: AddressCheck;
  readonly date: () => Date;
  /** What this process still had to send of it, as it stood, is sent no more. */
  readonly changed: (id: string) => void;
}

const hourMs = 3_600_000;

export class Webhooks {
  readonly #parts: WebhooksParts;

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  async list(authority: Authority): Promise<Webhook[]> {
    return (await store.listWebhooks(this.#parts.database, authority)).map(webhookOf);
  }

  async get(authority: Authority, id: string): Promise<Webhook> {
    return webhookOf(await this.#row(authority, id));
  }

  async create(authority: Authority, wish: WebhookCreation): Promise<WebhookWithSecret> {
    const { database, date } = this.#parts;
    // Before any name is looked up: whoever may have none makes us ask nobody.
    await requirePlan(database, authority.accountId);
    const url = await this.#accepted(wish.url);
    const id = newId('webhook');
    const secret = newSecret();
    const sealed = await this.#parts.vault.seal(secret, aboutWebhook(id));
    return changeAs(database, authority, 'member', async (tx) => {
      const { accountId, workspaceId } = authority;
      const most = await requirePlan(tx, accountId);
      if ((await store.countWebhooks(tx, accountId)) >= most) {
        throw new Refusal('webhook_limit', { limit: most });
      }
      const webhook = {
        id,
        account_id: accountId,
        workspace_id: workspaceId,
        url,
        description: wish.description ?? '',
        events: [...new Set(wish.events)],
        computers: [...new Set(wish.computers)],
        enabled: wish.enabled ?? true,
        secret: sealed,
      };
      const row = await store.insertWebhook(tx, webhook, date());
      return { ...webhookOf(row), secret: secretText(secret) };
    });
  }

  /** Rules 8 and 9. */
  async update(authority: Authority, id: string, change: WebhookChange): Promise<Webhook> {
    const { database, date, changed } = this.#parts;
    await this.#row(authority, id);
    const needsPlan = change.url !== undefined || change.enabled === true;
    if (needsPlan) await requirePlan(database, authority.accountId);
    const url = change.url === undefined ? undefined : await this.#accepted(change.url);
    const webhook = await this.#change(authority, id, async (tx) => {
      if (needsPlan) await requirePlan(tx, authority.accountId);
      const now = date();
      if (change.enabled === true) await store.enableWebhooks(tx, [id], now);
      if (change.enabled === false) await store.disableWebhooks(tx, [id], 'customer', now);
      const fields = {
        ...(url !== undefined && { url }),
        ...(change.description !== undefined && { description: change.description }),
        ...(change.events !== undefined && { events: [...new Set(change.events)] }),
        ...(change.computers !== undefined && { computers: [...new Set(change.computers)] }),
      };
      return webhookOf(await store.updateWebhook(tx, id, fields, now));
    });
    changed(id);
    return webhook;
  }

  async delete(authority: Authority, id: string): Promise<{ ok: true }> {
    if (!isId('webhook', id)) throw new Refusal('webhook_unknown');
    await changeAs(this.#parts.database, authority, 'member', async (tx) => {
      if (!(await store.deleteWebhook(tx, authority, id))) throw new Refusal('webhook_unknown');
    });
    this.#parts.changed(id);
    return { ok: true };
  }

  /** Rule 11: the old secret signs for another 24 hours, and one before it no longer. */
  async rotate(authority: Authority, id: string): Promise<WebhookWithSecret> {
    const secret = newSecret();
    const sealed = await this.#parts.vault.seal(secret, aboutWebhook(id));
    const webhook = await this.#change(authority, id, async (tx) => {
      const now = this.#parts.date();
      const until = new Date(now.getTime() + limits.webhookHours * hourMs);
      const row = await store.rotateSecret(tx, id, sealed, until, now);
      return { ...webhookOf(row), secret: secretText(secret) };
    });
    this.#parts.changed(id);
    return webhook;
  }

  /** Rule 12. */
  async test(authority: Authority, webhookId: string): Promise<WebhookDelivery> {
    return this.#send(authority, webhookId, async (tx, now) => {
      const id = newId('delivery');
      const type = 'webhook.test';
      const event = {
        type,
        at: now.toISOString(),
        computer: '',
        source: 'control-plane',
        data: { subscription: webhookId },
      };
      const test = { id, webhookId, type, cursor: `test:${id}`, body: JSON.stringify(event) };
      return deliveryOf(await deliveries.queueDelivery(tx, test, now));
    });
  }

  async deliveries(authority: Authority, id: string): Promise<WebhookDelivery[]> {
    const { database } = this.#parts;
    await this.#row(authority, id);
    const rows = await deliveries.newestDeliveries(database, id, limits.webhookDeliveriesListed);
    return rows.map(deliveryOf);
  }

  async redeliver(
    authority: Authority,
    webhookId: string,
    delivery: string,
  ): Promise<WebhookDelivery> {
    return this.#send(authority, webhookId, async (tx, now) => {
      const known = isId('delivery', delivery);
      const row = known ? await deliveries.findDelivery(tx, webhookId, delivery) : undefined;
      if (row === undefined) throw new Refusal('delivery_unknown');
      if (!(finishedStates as readonly string[]).includes(row.state)) {
        throw new Refusal('delivery_unfinished', { state: row.state });
      }
      const id = newId('delivery');
      const repeated = await deliveries.repeatDelivery(tx, webhookId, delivery, id, now);
      if (repeated === undefined) throw new Refusal('delivery_unknown');
      return deliveryOf(repeated);
    });
  }

  async redeliverRange(
    authority: Authority,
    webhookId: string,
    { from, to, states }: RedeliveryRange,
  ): Promise<{ queued: number; next_from: string | null }> {
    return this.#send(authority, webhookId, async (tx, now) => {
      const range = {
        from: new Date(from),
        to: to === undefined ? now : new Date(to),
        states: states ?? finishedStates,
        most: limits.webhookRedeliveries,
      };
      const { queued, nextFrom } = await deliveries.repeatDeliveries(tx, webhookId, range, now);
      return { queued, next_from: nextFrom?.toISOString() ?? null };
    });
  }

  async #row(authority: Authority, id: string): Promise<store.WebhookRow> {
    const known = isId('webhook', id);
    const row = known ? await store.findWebhook(this.#parts.database, authority, id) : undefined;
    if (row === undefined) throw new Refusal('webhook_unknown');
    return row;
  }

  /** In one transaction with the subscription locked. */
  async #change<Result>(
    authority: Authority,
    id: string,
    work: (tx: Runner, row: store.WebhookRow) => Promise<Result>,
  ): Promise<Result> {
    if (!isId('webhook', id)) throw new Refusal('webhook_unknown');
    return changeAs(this.#parts.database, authority, 'member', async (tx) => {
      const row = await store.lockWebhook(tx, authority, id);
      if (row === undefined) throw new Refusal('webhook_unknown');
      return work(tx, row);
    });
  }

  /** Something to deliver that the caller asked for. */
  async #send<Result>(
    authority: Authority,
    id: string,
    work: (tx: Runner, now: Date) => Promise<Result>,
  ): Promise<Result> {
    return this.#change(authority, id, async (tx, { enabled }) => {
      await requirePlan(tx, authority.accountId);
      if (!enabled) throw new Refusal('webhook_disabled');
      return work(tx, this.#parts.date());
    });
  }

  async #accepted(url: string): Promise<string> {
    try {
      return await this.#parts.check.accept(url);
    } catch (error) {
      if (!(error instanceof AddressRefused)) throw error;
      const { refusal } = error;
      if (refusal.why === 'refused') {
        throw new Refusal('webhook_url_refused', { problem: refusal.problem });
      }
      throw new Refusal('webhook_unresolved', { host: refusal.host });
    }
  }
}

/** How many the plan allows; 402 where it allows none (rule 9). */
async function requirePlan(db: Runner, accountId: string): Promise<number> {
  const most = (await planOfAccount(db, accountId))?.max_webhooks ?? 0;
  if (most === 0) throw new Refusal('webhooks_not_in_plan');
  return most;
}

function webhookOf(row: store.WebhookRow): Webhook {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    events: row.events,
    computers: row.computers,
    enabled: row.enabled,
    disabled_reason: row.disabled_reason,
    disabled_at: told(row.disabled_at),
    last_success_at: told(row.last_success_at),
    last_failure_at: told(row.last_failure_at),
    last_status: row.last_status,
    ...(row.workspace_id !== null && { workspace_id: row.workspace_id }),
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

function deliveryOf(row: deliveries.DeliveryRow): WebhookDelivery {
  return {
    ...row,
    next_at: told(row.next_at),
    attempted_at: told(row.attempted_at),
    delivered_at: told(row.delivered_at),
    created_at: row.created_at.toISOString(),
  };
}

function told(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}
