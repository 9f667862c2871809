import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { Budget, type BudgetStore, type Meter } from '../../packages/server/app/budget.ts';
import type { Authority } from '../../packages/server/app/authority.ts';
import { assertMetered, assertRefused, assertUnmetered } from '../support/assertions.ts';
import { startService, type TestService } from '../support/service.ts';

suite('the rate budget over HTTP', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  test('Part 8 Rate: each plan’s figure; half of it for a key', async () => {
    for (const [plan, units] of [
      ['none', 1_200],
      ['solo', 4_800],
      ['studio', 12_000],
      ['swarm', 21_600],
    ] as const) {
      const { as } = await service.account(plan);
      assert.deepEqual(assertMetered(await as.get('/whoami')), {
        limit: units / 2,
        remaining: units / 2 - 1,
        reset: 1,
      });
    }
  });

  test('Part 8 Rate: a spent key gets 429 with Retry-After; another key of the account still passes', async () => {
    const { as, account } = await service.account('none');
    const other = await service.member(account.id, 'viewer');
    const answers = [];
    const refused = [];
    // A read costs 10 of the key's 600 units; refilling gives 10 a second.
    while (refused.length < 3) {
      const answer = await as.get('/account');
      answers.push(answer);
      if (answer.status === 429) refused.push(answer);
    }
    for (const answer of refused) {
      assertRefused(answer, 429);
      const { limit, remaining } = assertMetered(answer);
      assert.equal(limit, 600);
      assert.ok(remaining < 10);
      assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
    }
    const passed = answers.filter(({ status }) => status === 200);
    for (const answer of passed) assert.equal(answer.headers['retry-after'], undefined);
    assert.equal((await other.as.get('/account')).status, 200);
  });

  test('Part 8 Rate: three keys meet the account’s figure, which then binds', async () => {
    const { as, account } = await service.account('none');
    const keys = [
      as,
      (await service.member(account.id, 'viewer')).as,
      (await service.member(account.id, 'viewer')).as,
    ];
    const limits = new Set<number>();
    let refused = 0;
    while (refused === 0) {
      for (const key of keys) {
        const answer = await key.get('/account');
        limits.add(assertMetered(answer).limit);
        if (answer.status === 429) refused += 1;
      }
    }
    assert.deepEqual(
      [...limits].toSorted((a, b) => a - b),
      [600, 1_200],
    );
  });

  test('Part 8 Rate: a refusal at the door costs 1, a 400 the whole cost, a 401 and OPTIONS nothing', async () => {
    const { as, account } = await service.account('none');
    const viewer = await service.member(account.id, 'viewer');
    const left = async (who: typeof as) => assertMetered(await who.get('/whoami')).remaining;
    const steps: [typeof as, () => Promise<{ status: number }>, number][] = [
      [viewer.as, () => viewer.as.post('/workspaces', { name: 'x' }), 403],
      [as, () => as.get('/nope'), 404],
      [as, () => as.send('PUT', '/account'), 405],
      [as, () => as.post('/workspaces', { name: '' }), 400],
    ];
    for (const [who, step, status] of steps) {
      const had = await left(who);
      const answer = await step();
      assert.equal(answer.status, status);
      // One for the step and one for looking again; time only ever adds.
      assert.ok(had - (await left(who)) <= 2);
    }
    for (const free of [
      await service.as().get('/account'),
      await service.as('x').get('/account'),
      await as.options('/account'),
    ]) {
      assertUnmetered(free);
    }
  });

  test('Part 8 Rate: the 403 of the authority re-check is free and carries no rate headers', async () => {
    const { account } = await service.account();
    const gone = await service.member(account.id, 'member');
    await service.operator.removeMember(account.id, gone.email);
    const answer = await gone.as.get('/workspaces');
    assertRefused(answer, 403, 'revoked');
    assertUnmetered(answer);
  });
});

suite('the arithmetic of the rate budget', () => {
  // Two processes over one store, on one clock of our own; the store does what lease_budgets() does.
  function world(cap = 1_200) {
    let now = 0;
    const buckets = new Map<string, { level: number; at: number }>();
    const refill = (name: string, most: number, held: number) => {
      const bucket = buckets.get(name) ?? { level: most - held, at: now };
      const level = Math.min(most - held, bucket.level + ((now - bucket.at) * most) / 60_000);
      buckets.set(name, { level, at: now });
      return level;
    };
    const store: BudgetStore = {
      async lease(ask) {
        let account_level = refill(ask.accountId, ask.cap, ask.accountHeld);
        let key_level = refill(ask.keyId, ask.cap / 2, ask.keyHeld);
        const available = Math.floor(Math.min(account_level, key_level));
        let granted = 0;
        if (available >= ask.need) {
          const most = Math.min(
            ask.want,
            Math.floor(available / 100),
            ask.cap / 50 - ask.accountHeld,
          );
          granted = Math.max(ask.need, Math.floor(most));
          account_level -= granted;
          key_level -= granted;
          buckets.set(ask.accountId, { level: account_level, at: now });
          buckets.set(ask.keyId, { level: key_level, at: now });
        }
        return { granted, account_level, key_level };
      },
      async giveBack(returned) {
        for (const { bucket, amount } of returned) {
          const kept = buckets.get(bucket);
          if (kept) kept.level += amount;
        }
      },
    };
    const process = () => new Budget(store, () => now);
    const key = (keyId: string) => ({ accountId: 'acc', keyId, rateUnits: cap }) as Authority;
    return { process, key, pass: (ms: number) => (now += ms) };
  }

  async function spendAll(charge: () => Meter | Promise<Meter>): Promise<number> {
    let admitted = 0;
    while ((await charge()).admitted) admitted += 1;
    return admitted;
  }

  test('Part 8 Rate: a key spends exactly half at once, then what refills, to the unit', async () => {
    const { process, key, pass } = world();
    const budget = process();
    assert.equal(await spendAll(() => budget.charge(key('k'), 1)), 600);
    const refused = await budget.charge(key('k'), 1);
    assert.deepEqual(
      [refused.limit, refused.remaining, refused.resetS, refused.retryAfterS],
      [600, 0, 60, 1],
    );
    pass(1_000);
    assert.equal(await spendAll(() => budget.charge(key('k'), 1)), 10);
    const dear = await budget.charge(key('k'), 100);
    assert.equal(dear.retryAfterS, 10);
    pass(dear.retryAfterS * 1_000);
    assert.equal((await budget.charge(key('k'), 100)).admitted, true, 'Retry-After is long enough');
    pass(3_600_000);
    assert.equal(await spendAll(() => budget.charge(key('k'), 1)), 600, 'no more than full');
  });

  test('Part 8 Rate: the remaining figure falls by the cost of each call', async () => {
    const { process, key, pass } = world();
    const budget = process();
    for (const [cost, remaining] of [
      [1, 599],
      [10, 589],
      [100, 489],
      [1, 488],
    ] as const) {
      assert.equal((await budget.charge(key('k'), cost)).remaining, remaining);
    }
    pass(60_000);
    const full = await budget.charge(key('k'), 1);
    assert.deepEqual([full.remaining, full.resetS], [599, 1]);
  });

  test('Part 8 Rate: the account’s figure holds over many keys and two processes, within 5 %', async () => {
    const { process, key } = world();
    const [one, two] = [process(), process()];
    let admitted = 0;
    let refusedInARow = 0;
    for (let n = 0; refusedInARow < 200; n += 1) {
      const budget = n % 2 === 0 ? one : two;
      const meter = await budget.charge(key(`k${n % 20}`), 1);
      admitted += meter.admitted ? 1 : 0;
      refusedInARow = meter.admitted ? 0 : refusedInARow + 1;
    }
    assert.ok(admitted <= 1_200, `${admitted} admitted`);
    assert.ok(admitted >= 1_140, `${admitted} admitted`);
  });

  test('what a process holds goes back when its keys rest', async () => {
    const { process, key, pass } = world(21_600);
    const [one, two] = [process(), process()];
    for (let n = 0; n < 10; n += 1) await one.charge(key('k'), 1);
    pass(5_000);
    await one.settle();
    assert.equal(await spendAll(() => two.charge(key('k'), 1)), 10_800);
  });
});
