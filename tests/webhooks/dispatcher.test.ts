// The maker of deliveries alone, where a process stands still or its lanes change behind its back.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { Operator } from '../../packages/server/app/operator.ts';
import { newId } from '../../packages/server/app/secrets.ts';
import { Database, only, sql } from '../../packages/server/db/database.ts';
import { aboutWebhook } from '../../packages/server/db/sealed-values.ts';
import { queueDelivery } from '../../packages/server/db/webhook-deliveries.ts';
import { disableFailingWebhooks } from '../../packages/server/db/webhook-lanes.ts';
import { insertWebhook } from '../../packages/server/db/webhooks.ts';
import { Keyring } from '../../packages/server/keyring.ts';
import { Dispatcher } from '../../packages/server/webhooks/dispatcher.ts';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import { newEmail } from '../support/service.ts';
import { until } from '../support/until.ts';

const hourMs = 3_600_000;
const stateOf = sql('SELECT state FROM webhook_deliveries WHERE webhook_id = $1');

suite('the maker of deliveries', () => {
  let kept: TestDatabase;
  let database: Database;
  let folder = '';
  let keyring: Keyring;
  before(async () => {
    kept = await makeDatabase();
    database = new Database({ connectionString: kept.url }, 4);
    folder = await mkdtemp(join(tmpdir(), 'cubicle-dispatcher-'));
    keyring = await Keyring.open(join(folder, 'keyring.json'));
  });
  after(async () => {
    await database.close();
    await kept.drop();
    await rm(folder, { recursive: true, force: true });
  });

  const started = (send: (id: string) => void) => {
    const dispatcher = new Dispatcher({
      database,
      keyring,
      sender: {
        send: async ({ id }) => {
          send(id);
          return { ok: true, status: 200, error: null };
        },
      },
      date: () => new Date(),
      waits: [],
      log: () => {},
    });
    dispatcher.start();
    return dispatcher;
  };

  /** A subscription with so many deliveries that are due then. */
  async function queued(count: number, due: Date): Promise<string> {
    const id = newId('webhook');
    const wish = { name: 'Tests', plan: 'swarm', owner: newEmail() };
    const { account } = await new Operator(database).createAccount(wish);
    const place = { id, account_id: account.id, workspace_id: null, url: 'https://x.example/' };
    const filters = { description: '', events: [], computers: [], enabled: true };
    const secret = keyring.seal(randomBytes(32), aboutWebhook(id));
    await insertWebhook(database, { ...place, ...filters, secret }, new Date());
    await database.transaction(async (tx) => {
      for (let n = 0; n < count; n += 1) {
        const delivery = { id: newId('delivery'), webhookId: id, type: 'webhook.test' };
        await queueDelivery(tx, { ...delivery, cursor: '', body: '{}' }, due);
      }
    });
    return id;
  }

  test('a process that stood still goes on with what it had fetched once its lanes are certain again', async (t) => {
    const now = performance.now.bind(performance);
    let ahead = 0;
    t.mock.method(performance, 'now', () => now() + ahead);
    await queued(20, new Date());
    const sent = new Set<string>();
    const dispatcher = started((id) => {
      sent.add(id);
      // Long enough for nothing to be begun, and not for the lanes to be somebody else's.
      ahead = 8_000;
    });
    await until('all are sent', () => sent.size === 20);
    await dispatcher.stop();
  });

  test('what is pending is dropped at once when its subscription has failed, whoever held its lane then', async () => {
    const id = await queued(1, new Date(Date.now() + hourMs));
    await disableFailingWebhooks(database, [], [id], new Date(), new Date());
    const dispatcher = started(() => {});
    await until('it is dropped', async () => {
      const { state } = only(await database.run<{ state: string }>(stateOf, [id]));
      return state === 'dropped';
    });
    await dispatcher.stop();
  });
});
