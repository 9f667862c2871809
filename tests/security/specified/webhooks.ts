// Webhooks: Part 4 Webhooks, Part 8, wire-account section 8, and redelivery as the contract adds it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { newId } from '../../../packages/server/app/secrets.ts';
import { sql } from '../../../packages/server/db/database.ts';
import { insertWebhook } from '../../../packages/server/db/webhooks.ts';
import type { Caller } from '../callers.ts';
import { ids, idsIn } from './proofs.ts';
import { type Prepared, type Specified, usual } from './shape.ts';

/** Public by its literal, so that nobody is asked for it; nothing is sent to it. */
const url = 'https://8.8.8.8/hook';
const member = { ...usual, role: 'member' } as const;

export const webhookOperations: Record<string, Specified> = {
  listWebhooks: {
    ...usual,
    method: 'GET',
    path: '/webhooks',
    role: 'viewer',
    calls: [
      {
        async prepare(who) {
          await sharedWebhook(who);
          return {
            changes: [],
            async proves({ body }) {
              const { world, key } = who;
              assert.deepEqual(
                idsIn(body),
                await ids(world, seen, [world.accountId, key.confinedTo]),
              );
            },
          };
        },
      },
    ],
  },
  createWebhook: {
    ...member,
    method: 'POST',
    path: '/webhooks',
    cost: 25,
    status: 201,
    calls: [
      {
        async prepare(who) {
          const { world, key } = who;
          return {
            json: { url },
            changes: ['webhook_lanes', 'webhooks'],
            async proves({ body }) {
              assert.equal(body.workspace_id ?? null, key.confinedTo);
              assert.ok((await ids(world, seen, [world.accountId, null])).includes(body.id));
            },
          };
        },
      },
    ],
  },
  getWebhook: {
    ...usual,
    method: 'GET',
    path: '/webhooks/{id}',
    role: 'viewer',
    calls: [
      {
        async prepare(who) {
          const id = await sharedWebhook(who);
          const proves: Prepared['proves'] = ({ body }) => assert.equal(body.id, id);
          return { parameters: { id }, changes: [], proves };
        },
      },
    ],
  },
  updateWebhook: {
    ...member,
    method: 'PATCH',
    path: '/webhooks/{id}',
    calls: [
      on(async (id) => ({
        json: { description: 'changed' },
        changes: ['webhooks'],
        proves: ({ body }) => assert.deepEqual([body.id, body.description], [id, 'changed']),
      })),
    ],
  },
  deleteWebhook: {
    ...member,
    method: 'DELETE',
    path: '/webhooks/{id}',
    calls: [
      on(async (id, { world }) => {
        await giveDelivery(world, id);
        return {
          changes: ['webhook_deliveries', 'webhook_lanes', 'webhooks'],
          async proves({ body }) {
            assert.deepEqual(body, { ok: true });
            assert.ok(!(await ids(world, seen, [world.accountId, null])).includes(id));
          },
        };
      }),
    ],
  },
  rotateWebhook: {
    ...member,
    method: 'POST',
    path: '/webhooks/{id}/rotate',
    cost: 25,
    calls: [
      on(async (id) => ({
        changes: ['webhooks'],
        proves: ({ body }) => assert.deepEqual([body.id, typeof body.secret], [id, 'string']),
      })),
    ],
  },
  testWebhook: {
    ...member,
    method: 'POST',
    path: '/webhooks/{id}/test',
    cost: 25,
    status: 202,
    calls: [
      on(async () => ({
        changes: ['webhook_deliveries', 'webhook_lanes'],
        proves: ({ body }) => assert.equal(body.event_type, 'webhook.test'),
      })),
    ],
  },
  listWebhookDeliveries: {
    ...usual,
    method: 'GET',
    path: '/webhooks/{id}/deliveries',
    role: 'viewer',
    calls: [
      {
        async prepare(who) {
          const id = await sharedWebhook(who);
          const proves: Prepared['proves'] = async ({ body }) =>
            assert.deepEqual(idsIn(body), await ids(who.world, deliveriesOf, [id]));
          return { parameters: { id }, changes: [], proves };
        },
      },
    ],
  },
  redeliverWebhookDelivery: {
    ...member,
    method: 'POST',
    path: '/webhooks/{id}/deliveries/{delivery}/redeliver',
    cost: 25,
    status: 202,
    calls: [
      on(async (id, { world }) => {
        const delivery = await giveDelivery(world, id);
        return {
          parameters: { id, delivery },
          changes: ['webhook_deliveries', 'webhook_lanes'],
          proves: ({ body }) => assert.notEqual(body.id, delivery),
        };
      }),
    ],
  },
  redeliverWebhook: {
    ...member,
    method: 'POST',
    path: '/webhooks/{id}/redeliver',
    cost: 25,
    status: 202,
    calls: [
      on(async (id, { world }) => {
        await giveDelivery(world, id);
        return {
          json: { from: '2020-01-01T00:00:00Z' },
          changes: ['webhook_deliveries', 'webhook_lanes'],
          proves: ({ body }) => assert.deepEqual(body, { queued: 1, next_from: null }),
        };
      }),
    ],
  },
};

/** A call on a webhook that the caller's key can see. */
function on(work: (id: string, who: Caller) => Promise<Prepared>): Specified['calls'][number] {
  return {
    async prepare(who) {
      const id = await webhookFor(who);
      return { parameters: { id }, ...(await work(id, who)) };
    },
  };
}

const shared = new WeakMap<Caller['world'], Promise<{ wide: string; confined: string }>>();

/** For those who only read, many at once: one account-wide and one confined, made before any of them looks. */
async function sharedWebhook({ world, key }: Caller): Promise<string> {
  const make = async () => {
    const [wide, confined] = [await give(world, null), await give(world, world.home)];
    for (const id of [wide, confined]) await giveDelivery(world, id);
    return { wide, confined };
  };
  if (!shared.has(world)) shared.set(world, make());
  const { wide = '', confined = '' } = (await shared.get(world)) ?? {};
  return key.confinedTo === null ? wide : confined;
}

function webhookFor({ world, key }: Caller): Promise<string> {
  return give(world, key.confinedTo);
}

async function give(world: Caller['world'], workspaceId: string | null): Promise<string> {
  const row = await insertWebhook(
    world.service.database,
    {
      id: newId('webhook'),
      account_id: world.accountId,
      workspace_id: workspaceId,
      url,
      description: '',
      events: [],
      computers: [],
      enabled: true,
      secret: randomBytes(64),
    },
    new Date(),
  );
  return row.id;
}

const seen = sql(`
  SELECT id FROM webhooks WHERE account_id = $1 AND ($2::text IS NULL OR workspace_id = $2) ORDER BY seq`);
const deliveriesOf = sql('SELECT id FROM webhook_deliveries WHERE webhook_id = $1');
const insertDelivery = sql(`
  INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, state, created_at)
  VALUES ($1, $2, 'computer.idle', 'vm-1', 'e:1', '{}', 'delivered', now() - interval '1 hour')`);

async function giveDelivery({ service }: Caller['world'], webhookId: string): Promise<string> {
  const id = newId('delivery');
  await service.database.run(insertDelivery, [id, webhookId]);
  return id;
}
