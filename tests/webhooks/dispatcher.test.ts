import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Operator } from '../../packages/server/app/operator.ts';
import { newId } from '../../packages/server/app/secrets.ts';
import { Database } from '../../packages/server/db/database.ts';
import { aboutWebhook } from '../../packages/server/db/sealed-values.ts';
import { queueDelivery } from '../../packages/server/db/webhook-deliveries.ts';
import { insertWebhook } from '../../packages/server/db/webhooks.ts';
import { Keyring } from '../../packages/server/keyring.ts';
import { Dispatcher } from '../../packages/server/webhooks/dispatcher.ts';
import { makeDatabase } from '../support/database.ts';
import { newEmail } from '../support/service.ts';
import { until } from '../support/until.ts';

test('a process that stood still goes on with what it had fetched once its lanes are certain again', async (t) => {
  const kept = await makeDatabase();
  const database = new Database({ connectionString: kept.url }, 4);
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-dispatcher-'));
  const keyring = await Keyring.open(join(folder, 'keyring.json'));
  const sent = new Set<string>();
  const now = performance.now.bind(performance);
  let ahead = 0;
  t.mock.method(performance, 'now', () => now() + ahead);
  const dispatcher = new Dispatcher({
    database,
    keyring,
    sender: {
      send: async ({ id }) => {
        sent.add(id);
        // Long enough for nothing to be begun, and not for the lanes to be somebody else's.
        ahead = 8_000;
        return { ok: true, status: 200, error: null };
      },
    },
    date: () => new Date(),
    waits: [],
    log: () => {},
  });
  try {
    const id = newId('webhook');
    const wish = { name: 'Tests', plan: 'swarm', owner: newEmail() };
    const { account } = await new Operator(database).createAccount(wish);
    const filters = { description: '', events: [], computers: [], enabled: true };
    const place = { id, account_id: account.id, workspace_id: null, url: 'https://x.example/' };
    const secret = keyring.seal(randomBytes(32), aboutWebhook(id));
    await insertWebhook(database, { ...place, ...filters, secret }, new Date());
    await database.transaction(async (tx) => {
      for (let n = 0; n < 20; n += 1) {
        const delivery = { id: newId('delivery'), webhookId: id, type: 'webhook.test' };
        await queueDelivery(tx, { ...delivery, cursor: '', body: '{}' }, new Date());
      }
    });
    dispatcher.start();
    await until('all are sent', () => sent.size === 20);
  } finally {
    await dispatcher.stop();
    await database.close();
    await kept.drop();
    await rm(folder, { recursive: true, force: true });
  }
});
