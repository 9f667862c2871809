// Webhooks: Part 2 Webhook and WebhookDelivery, Part 4 Webhooks, Part 6.1, wire-account section 8.

import { z } from 'zod';
import { webhookEvents } from '../events.ts';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { timestamp } from '../timestamp.ts';

const disabledReasons = ['customer', 'failing', 'plan'] as const;
const deliveryStates = ['pending', 'in_flight', 'delivered', 'exhausted', 'dropped'] as const;
/** Those that nothing changes any more. */
export const finishedStates = ['delivered', 'exhausted', 'dropped'] as const;

const webhookFields = {
  id: z.string().regex(idPattern('webhook')),
  url: z.string().describe('As parsed: host in lower case, default port dropped.'),
  description: z.string(),
  events: z.array(z.string()).describe('Types received; empty means every type.'),
  computers: z.array(z.string()).describe('Computers received for; empty means all in scope.'),
  enabled: z.boolean(),
  disabled_reason: z.enum(disabledReasons).nullable(),
  disabled_at: timestamp.nullable(),
  last_success_at: timestamp.nullable().describe('The last 2xx answer to any delivery.'),
  last_failure_at: timestamp.nullable().describe('The last failed attempt.'),
  last_status: z.int().nullable().describe('Status of the newest attempt; null without an answer.'),
  workspace_id: z
    .string()
    .regex(idPattern('workspace'))
    .optional()
    .describe('Present only where a key confined to a workspace made it.'),
  created_at: timestamp,
  updated_at: timestamp,
};
const webhook = z.strictObject(webhookFields).meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhook>;

const webhookWithSecret = z
  .strictObject({
    ...webhookFields,
    secret: z
      .string()
      .regex(/^whsec_[A-Za-z0-9+/]{43}=$/)
      .describe('Shown this once.'),
  })
  .meta({ id: 'WebhookWithSecret' });
export type WebhookWithSecret = z.infer<typeof webhookWithSecret>;

const delivery = z
  .strictObject({
    id: z.string().regex(idPattern('delivery')).describe('Equals the header `webhook-id`.'),
    event_type: z.string(),
    computer: z.string().describe('Empty on a test.'),
    cursor: z.string(),
    state: z.enum(deliveryStates),
    attempts: z.int().min(0).max(limits.webhookAttempts),
    next_at: timestamp.nullable().describe('When the next attempt is due; null once finished.'),
    attempted_at: timestamp.nullable().describe('When the newest attempt began.'),
    last_status: z.int().nullable(),
    last_error: z
      .string()
      .nullable()
      .describe(
        'One line: `timeout`, `dns`, `refused`, `reset`, `unreachable`, `tls`, `redirect`, `address refused`, `status NNN` or another; of a dropped delivery why it was dropped.',
      ),
    delivered_at: timestamp.nullable(),
    created_at: timestamp.describe('When the event reached the queue.'),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof delivery>;

const vocabulary = webhookEvents.join(', ');
// PostgreSQL keeps no text with these, and no receiver is served by them.
const storable = (text: string) => text.isWellFormed() && !text.includes('\0');
const unstorable = { error: 'must be well-formed Unicode without U+0000' };
const fields = {
  url: z.string().max(limits.webhookUrl, {
    error: `must have at most ${limits.webhookUrl} characters`,
  }),
  events: z.array(z.enum(webhookEvents, { error: `must be one of ${vocabulary}` })),
  computers: z
    .array(
      z
        .string()
        .min(1, { error: 'must not be empty' })
        .max(limits.webhookComputerId, {
          error: `must have at most ${limits.webhookComputerId} characters`,
        })
        .refine(storable, unstorable),
    )
    .max(limits.webhookComputers, { error: `must name at most ${limits.webhookComputers}` }),
  enabled: z.boolean(),
  description: z
    .string()
    // In UTF-16 units; zod counts code points.
    .refine((text) => text.length <= limits.webhookDescription, {
      error: `must have at most ${limits.webhookDescription} characters`,
    })
    .refine(storable, unstorable)
    .meta({ maxLength: limits.webhookDescription }),
};
const optional = {
  events: fields.events.optional(),
  computers: fields.computers.optional(),
  enabled: fields.enabled.optional(),
  description: fields.description.optional(),
};
const creation = z.strictObject({ url: fields.url, ...optional });
export type WebhookCreation = z.infer<typeof creation>;
const change = z
  .strictObject({ url: fields.url.optional(), ...optional })
  .refine((body) => Object.keys(body).length > 0, {
    error: 'must name at least one of url, description, events, computers, enabled',
  });
export type WebhookChange = z.infer<typeof change>;

const instant = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time with its zone' });
const range = z
  .strictObject({
    from: instant.describe('Queued at or after this time.'),
    to: instant.optional().describe('Queued before this time; now unless said.'),
    states: z
      .array(z.enum(finishedStates))
      .min(1)
      .optional()
      .describe('Only deliveries that ended so; all finished ones unless said.'),
  })
  .meta({ id: 'WebhookRedelivery' });
export type RedeliveryRange = z.infer<typeof range>;

const source = 'Part 4, Webhooks';
const one = { reach: 'scope', cost: costs.readOne } as const;
const work = { method: 'POST', role: 'member', reach: 'scope', cost: costs.webhookWork } as const;
const acceptance = { status: 202, schema: delivery };

export const webhookRoutes = defineRoutes({
  listWebhooks: {
    method: 'GET',
    path: '/webhooks',
    role: 'viewer',
    ...one,
    answer: { status: 200, schema: z.array(webhook) },
    errors: [],
    summary: 'List webhooks',
    prose: 'Oldest first, never with a secret. A confined key lists those of its workspace.',
    source,
  },
  createWebhook: {
    ...work,
    path: '/webhooks',
    body: { schema: creation, cap: limits.webhookBody },
    answer: { status: 201, schema: webhookWithSecret },
    errors: [
      'webhook_url_refused',
      'webhook_unresolved',
      'webhooks_not_in_plan',
      'webhook_limit',
      'keyring_unavailable',
    ],
    summary: 'Subscribe an https address to events',
    prose: `The address must be https, carry no credentials, and resolve to public addresses alone. \`events\` and \`computers\` filter; left out or empty they let everything through. Made with a key confined to a workspace, it hears of that workspace’s computers. The plan says how many an account may have. The secret is shown this once: deliveries are signed with it as Standard Webhooks are.`,
    source,
  },
  getWebhook: {
    method: 'GET',
    path: '/webhooks/{id}',
    role: 'viewer',
    ...one,
    answer: { status: 200, schema: webhook },
    errors: ['webhook_unknown'],
    summary: 'Read a webhook',
    prose: 'Without its secret.',
    source,
  },
  updateWebhook: {
    method: 'PATCH',
    path: '/webhooks/{id}',
    role: 'member',
    ...one,
    body: { schema: change, cap: limits.webhookBody },
    answer: { status: 200, schema: webhook },
    errors: [
      'webhook_unknown',
      'webhook_url_refused',
      'webhook_unresolved',
      'webhooks_not_in_plan',
    ],
    summary: 'Change a webhook',
    prose:
      'What is left out stays. `enabled: false` is no pause: events meanwhile are not queued, and what falls due is dropped. `enabled: true` gives a disabled one a fresh start.',
    source,
  },
  deleteWebhook: {
    method: 'DELETE',
    path: '/webhooks/{id}',
    role: 'member',
    ...one,
    answer: {
      status: 200,
      schema: z.strictObject({ ok: z.literal(true) }).meta({ id: 'WebhookDeleted' }),
    },
    errors: ['webhook_unknown'],
    summary: 'Delete a webhook',
    prose: 'With all records of its deliveries, pending ones included.',
    source,
  },
  rotateWebhook: {
    ...work,
    path: '/webhooks/{id}/rotate',
    answer: { status: 200, schema: webhookWithSecret },
    errors: ['webhook_unknown', 'keyring_unavailable'],
    summary: 'Give a webhook a new secret',
    prose: `For ${limits.webhookHours} hours deliveries carry two signatures, the new one first. Rotating again meanwhile replaces the previous secret: there are never three.`,
    source,
  },
  testWebhook: {
    ...work,
    path: '/webhooks/{id}/test',
    answer: acceptance,
    errors: ['webhook_unknown', 'webhook_disabled', 'webhooks_not_in_plan'],
    summary: 'Send a test event',
    prose:
      'Queues an event `webhook.test`, which is signed, retried and recorded as any other. The answer is its delivery, not yet made.',
    source,
  },
  listWebhookDeliveries: {
    method: 'GET',
    path: '/webhooks/{id}/deliveries',
    role: 'viewer',
    ...one,
    answer: { status: 200, schema: z.array(delivery).max(limits.webhookDeliveriesListed) },
    errors: ['webhook_unknown'],
    summary: 'List the newest deliveries',
    prose: `The newest ${limits.webhookDeliveriesListed}, newest first. Finished ones are kept for ${limits.webhookRetentionDays} days after they were queued, pending ones until they finish.`,
    source,
  },
  redeliverWebhookDelivery: {
    ...work,
    path: '/webhooks/{id}/deliveries/{delivery}/redeliver',
    answer: acceptance,
    errors: [
      'webhook_unknown',
      'delivery_unknown',
      'delivery_unfinished',
      'webhook_disabled',
      'webhooks_not_in_plan',
    ],
    summary: 'Deliver an event again',
    prose:
      'Queues a new delivery, with an id of its own, of the event that a finished one carried. Beyond the specification.',
    source: 'ours',
  },
  redeliverWebhook: {
    ...work,
    path: '/webhooks/{id}/redeliver',
    body: { schema: range, cap: limits.webhookBody },
    answer: {
      status: 202,
      schema: z
        .strictObject({
          queued: z.int().nonnegative(),
          next_from: timestamp
            .nullable()
            .describe('Where to go on when the range held more than one call takes.'),
        })
        .meta({ id: 'WebhookRedelivered' }),
    },
    errors: ['webhook_unknown', 'webhook_disabled', 'webhooks_not_in_plan'],
    summary: 'Deliver the events of a time range again',
    prose: `Queues a new delivery of the event of every finished one that was queued in the range, oldest first, at most ${limits.webhookRedeliveries} in one call. Beyond the specification.`,
    source: 'ours',
  },
});
