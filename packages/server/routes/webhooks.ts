import type { webhookRoutes } from '@cubicle/contract/resources/webhooks.ts';
import type { Webhooks } from '../app/webhooks.ts';
import type { Handlers } from './handler.ts';

export function webhookHandlers(webhooks: Webhooks): Handlers<typeof webhookRoutes> {
  return {
    listWebhooks: ({ authority }) => webhooks.list(authority),
    createWebhook: ({ authority, body }) => webhooks.create(authority, body),
    getWebhook: ({ authority, parameters }) => webhooks.get(authority, parameters.id),
    updateWebhook: ({ authority, parameters, body }) =>
      webhooks.update(authority, parameters.id, body),
    deleteWebhook: ({ authority, parameters }) => webhooks.delete(authority, parameters.id),
    rotateWebhook: ({ authority, parameters }) => webhooks.rotate(authority, parameters.id),
    testWebhook: ({ authority, parameters }) => webhooks.test(authority, parameters.id),
    listWebhookDeliveries: ({ authority, parameters }) =>
      webhooks.deliveries(authority, parameters.id),
    redeliverWebhookDelivery: ({ authority, parameters }) =>
      webhooks.redeliver(authority, parameters.id, parameters.delivery),
    redeliverWebhook: ({ authority, parameters, body }) =>
      webhooks.redeliverRange(authority, parameters.id, body),
  };
}
