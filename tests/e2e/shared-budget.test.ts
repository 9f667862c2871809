import assert from 'node:assert/strict';
import { after, before, suite, test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Operator } from '../../packages/server/app/operator.ts';
import { Database } from '../../packages/server/db/database.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import { Ground, type ServiceProcess } from '../support/process.ts';
import { newEmail } from '../support/service.ts';
import { until } from '../support/until.ts';

const workersEach = 4;
const refusalsEach = 40;

interface Spending {
  /** When each admitted call was answered, in order. */
  readonly admitted: number[];
  readonly firstSentAt: number;
  readonly lastAnsweredAt: number;
  /** When the last refused call was sent, and its answer. */
  readonly lastRefusedAt: number;
  readonly lastRefused: Answer;
}

/** Spends at both processes at once, until each has refused for a while. */
async function spendAll(services: ServiceProcess[], keys: string[]): Promise<Spending> {
  const admitted: number[] = [];
  const firstSentAt = performance.now();
  let lastRefusedAt = 0;
  let lastRefused: Answer | undefined;
  let turn = 0;
  await Promise.all(
    services.map(async (service) => {
      let refusals = 0;
      const clients = keys.map((key) => service.as(key));
      const work = async () => {
        while (refusals < refusalsEach) {
          turn += 1;
          const sentAt = performance.now();
          // A path that matches nothing costs one unit and needs no database.
          const answer = await (clients[turn % clients.length] as Client).get('/nothing');
          if (answer.status === 404) {
            admitted.push(performance.now());
          } else {
            assert.equal(answer.status, 429, answer.text);
            refusals += 1;
            if (sentAt > lastRefusedAt) [lastRefusedAt, lastRefused] = [sentAt, answer];
          }
        }
      };
      await Promise.all(Array.from({ length: workersEach }, work));
    }),
  );
  assert.ok(lastRefused);
  const lastAnsweredAt = performance.now();
  return { admitted, firstSentAt, lastAnsweredAt, lastRefusedAt, lastRefused };
}

/**
 * Never more than capacity and refill over a span that contains all calls. Never less: a bucket that is
 * drawn from when the answers arrived, so not before the service did, overflows at least as much as the
 * real one, so what it still holds when a call was refused was withheld. Slowness moves neither bound.
 */
function assertShare(t: TestContext, spending: Spending, capacity: number): void {
  const { admitted, firstSentAt, lastAnsweredAt, lastRefusedAt } = spending;
  const perMs = capacity / 60_000;
  const most = capacity + perMs * (lastAnsweredAt - firstSentAt);
  let level = capacity;
  let at = admitted[0] ?? lastRefusedAt;
  for (const moment of admitted.filter((answeredAt) => answeredAt <= lastRefusedAt)) {
    level = Math.min(capacity, level + perMs * (moment - at)) - 1;
    at = moment;
  }
  const withheld = Math.min(capacity, level + perMs * (lastRefusedAt - at));
  t.diagnostic(
    `${admitted.length} units of ${most.toFixed(1)} (${((admitted.length / most) * 100).toFixed(2)} %) in ` +
      `${((lastAnsweredAt - firstSentAt) / 1_000).toFixed(2)} s, ${withheld.toFixed(1)} withheld`,
  );
  assert.ok(admitted.length <= most * 1.05, `${admitted.length} admitted, ${most} may be`);
  assert.ok(withheld <= capacity * 0.05, `${withheld} units were withheld`);
}

function assertLimited(answer: Answer, limit: number): number {
  assertRefused(answer, 429);
  const meter = assertMetered(answer);
  assert.equal(meter.limit, limit);
  assert.equal(meter.remaining, 0);
  assert.ok(meter.reset > 0);
  assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
  return Number(answer.headers['retry-after']);
}

/** Waits as long as the answer says, counted from its arrival; what is under test is just that. */
async function asTold(answer: Answer): Promise<void> {
  await pause(Number(answer.headers['retry-after']) * 1_000 + 1);
}

suite('one rate budget for two processes', () => {
  const ground = new Ground();
  let kept: TestDatabase;
  let database: Database;
  let operator: Operator;
  let services: ServiceProcess[];
  before(async () => {
    kept = await makeDatabase();
    const settings = { DATABASE_URL: kept.url };
    const folders = [await ground.folder(), await ground.folder()];
    services = await Promise.all(folders.map((folder) => ground.start(folder, settings)));
    database = new Database({ connectionString: kept.url }, 2);
    operator = new Operator(database);
  });
  after(async () => {
    await ground.clear();
    await database.close();
    await kept.drop();
  });

  async function keysOf(plan: string, count: number): Promise<string[]> {
    const owner = newEmail();
    const made = await operator.createAccount({ name: 'Budget', plan, owner });
    const keys = [made.key.raw];
    while (keys.length < count) {
      const wish = { account: made.account.id, email: owner, manageKeys: false };
      keys.push((await operator.createKey(wish)).raw);
    }
    return keys;
  }

  test('Part 8 Rate: one key spends half of the account’s budget across both processes', async (t) => {
    const keys = await keysOf('none', 2);
    const spending = await spendAll(services, keys.slice(0, 1));
    assertShare(t, spending, 600);
    assertLimited(spending.lastRefused, 600);
    // The other half is there for another key.
    const other = await services[0]?.as(keys[1]).get('/whoami');
    assert.equal(other?.status, 200);
  });

  test('Part 8 Rate: three keys spend the whole account’s budget across both processes', async (t) => {
    const keys = await keysOf('none', 3);
    const spending = await spendAll(services, keys);
    assertShare(t, spending, 1200);
    assertLimited(spending.lastRefused, 1200);
  });

  test('Part 8 Rate: after Retry-After the call passes, at either process', async () => {
    const keys = await keysOf('none', 1);
    await spendAll(services, keys);
    for (const service of services) {
      const as = service.as(keys[0]);
      const refused = await until('the budget is spent', async () => {
        const answer = await as.get('/account');
        return answer.status === 429 ? answer : undefined;
      });
      assertRefused(refused, 429);
      assertMetered(refused);
      await asTold(refused);
      assert.equal((await as.get('/account')).status, 200);
    }
  });

  test('Part 8 Rate: Retry-After holds also when the key’s bucket is the slower one', async () => {
    await operator.setPlan('solo', { rate_units: 120 });
    const keys = await keysOf('solo', 3);
    await spendAll(services, keys.slice(0, 2));
    // The third key keeps the account's bucket empty, while the first key's own gets a few units.
    const [service] = services as [ServiceProcess];
    const enough = performance.now() + 3_000;
    while (performance.now() < enough) await service.as(keys[2]).get('/nothing');
    const as = service.as(keys[0]);
    // A machine that stands still for a moment fills it.
    const refused = await until('the budget is spent', async () => {
      await service.as(keys[2]).get('/nothing');
      const answer = await as.get('/account');
      return answer.status === 429 ? answer : undefined;
    });
    assertRefused(refused, 429);
    await asTold(refused);
    const answer = await as.get('/account');
    assert.equal(answer.status, 200, `${refused.headers['retry-after']} s were not enough`);
  });
});
