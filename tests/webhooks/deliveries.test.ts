import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { trimDeliveries } from '../../packages/server/db/webhook-deliveries.ts';
import { usualWaits, waitAfter } from '../../packages/server/webhooks/schedule.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { Receiver, status, verified, verifiedThen } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import {
  deliveriesOf,
  good,
  subscribed,
  tested,
  webhookGround,
  type WebhookGround,
} from '../support/webhooks.ts';

const secondMs = 1_000;
const hourMs = 3_600 * secondMs;

suite('deliveries', () => {
  let ground: WebhookGround;
  let as: Client;
  let receiver: Receiver;
  const receivers: Receiver[] = [];
  before(async () => {
    ground = await webhookGround();
  });
  beforeEach(async () => {
    ({ as } = await ground.service.account());
    receiver = await another();
  });
  after(async () => {
    await ground.stop();
    for (const one of receivers) await one.stop();
  });

  const another = async (...wish: Parameters<typeof Receiver.start>) => {
    const made = await Receiver.start(...wish);
    receivers.push(made);
    return made;
  };
  const only = async (id: string) => (await deliveriesOf(as, id))[0];
  const reaches = (id: string, state: string, attempts?: number) =>
    until(`a delivery is ${state} after ${attempts} attempts`, async () => {
      const delivery = await only(id);
      const there =
        delivery.state === state && (attempts ?? delivery.attempts) === delivery.attempts;
      return there && delivery;
    });
  /** Past the longest jitter of the wait that follows this attempt. */
  const passWait = async (id: string) => {
    const { next_at } = await only(id);
    ground.clock.forward(Date.parse(next_at) - ground.clock.date().getTime() + 1);
  };

  test('Part 4 Webhooks 12, Part 6.1 1, Part 3 Delivery: a test arrives signed, and is recorded as delivered', async () => {
    const { id, secret } = await subscribed(as, receiver.url);
    const accepted = await tested(as, id);
    const delivered = await reaches(id, 'delivered', 1);
    assert.deepEqual(
      [delivered.id, delivered.last_status, delivered.last_error, delivered.next_at],
      [accepted.id, 200, null, null],
    );
    assert.ok(delivered.delivered_at >= delivered.attempted_at);
    const [received] = receiver.received;
    assert.ok(received);
    assert.equal(received.headers['webhook-id'], accepted.id);
    assert.equal(received.headers['webhook-subscription'], id);
    const { at, ...event } = verified(secret, received) as Record<string, unknown>;
    assert.equal(typeof at, 'string');
    assert.deepEqual(event, {
      type: 'webhook.test',
      computer: '',
      source: 'control-plane',
      data: { subscription: id },
    });
    const { last_success_at, last_failure_at, last_status } = good(await as.get(`/webhooks/${id}`));
    assert.deepEqual(
      [last_success_at, last_failure_at, last_status],
      [delivered.delivered_at, null, 200],
    );
  });

  test('Part 6.1 2, Part 8 Sizes: eight attempts by the schedule, then exhausted', async () => {
    receiver.answer = status(500);
    const { id, secret } = await subscribed(as, receiver.url);
    const { id: delivery } = await tested(as, id);
    for (let attempt = 1; attempt <= 8; attempt += 1) {
      const state = attempt < 8 ? 'pending' : 'exhausted';
      const failed = await reaches(id, state, attempt);
      assert.deepEqual([failed.last_status, failed.last_error], [500, 'status 500']);
      const wait = usualWaits[attempt - 1];
      if (wait === undefined) break;
      const waits = Date.parse(failed.next_at) - Date.parse(failed.attempted_at);
      // An attempt takes a while, and a little is added.
      assert.ok(waits >= wait && waits <= wait * 1.05 + 15 * secondMs + hourMs / 60, `${waits}`);
      await passWait(id);
    }
    const { next_at, delivered_at } = await only(id);
    assert.deepEqual([next_at, delivered_at], [null, null]);
    assert.deepEqual(
      receiver.ids,
      Array.from({ length: 8 }, () => delivery),
    );
    const stamps = receiver.received.map(({ headers }) => Number(headers['webhook-timestamp']));
    assert.equal(new Set(stamps).size, 8, 'a fresh timestamp each time');
    assert.equal(new Set(receiver.received.map((r) => r.headers['webhook-signature'])).size, 8);
    assert.equal(receiver.events(secret).length, 8);
    assert.equal(good(await as.get(`/webhooks/${id}`)).enabled, true, 'not yet 24 hours');
  });

  test('Part 6.1 2: the waits are those of the specification, a little later at most, and put off by the receiver', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => waitAfter(n, usualWaits, 0, () => 0));
    const hours = waits.slice(0, 7).map((ms) => (ms ?? 0) / secondMs);
    assert.deepEqual(hours, [30, 120, 600, 1_800, 3_600, 14_400, 28_800]);
    assert.equal(waits[7], undefined);
    for (const n of [1, 4, 7]) {
      const [least = 0, most = 0] = [0, 1].map((r) => waitAfter(n, usualWaits, 0, () => r));
      assert.ok(most > least && most - least <= 15 * secondMs);
    }
    assert.equal(
      waitAfter(1, usualWaits, 500, () => 0),
      30 * secondMs,
      'never earlier',
    );
    assert.equal(
      waitAfter(1, usualWaits, hourMs, () => 0),
      hourMs,
    );
  });

  test('Part 3 Webhook: failing for 24 hours disables, pending deliveries are dropped, enabling starts afresh', async () => {
    receiver.answer = status(500);
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    for (let attempt = 1; attempt < 8; attempt += 1) {
      await reaches(id, 'pending', attempt);
      await passWait(id);
    }
    await reaches(id, 'exhausted', 8);
    assert.equal(good(await as.get(`/webhooks/${id}`)).enabled, true, '14 hours are not enough');
    await tested(as, id);
    for (let attempt = 1; attempt < 8; attempt += 1) {
      await reaches(id, 'pending', attempt);
      if (attempt === 7) await tested(as, id);
      const last = (await deliveriesOf(as, id)).at(attempt === 7 ? 1 : 0);
      ground.clock.forward(Date.parse(last.next_at) - ground.clock.date().getTime() + 1);
    }
    const off = await until('it is disabled', async () => {
      const webhook = good(await as.get(`/webhooks/${id}`));
      return !webhook.enabled && webhook;
    });
    assert.equal(off.disabled_reason, 'failing');
    await until('what was pending is dropped', async () => {
      const states = (await deliveriesOf(as, id)).map(({ state }) => state);
      return states.join() === 'dropped,exhausted,exhausted';
    });
    const [dropped] = await deliveriesOf(as, id);
    assert.deepEqual([dropped.next_at, typeof dropped.last_error], [null, 'string']);
    const on = good(await as.patch(`/webhooks/${id}`, { enabled: true }));
    assert.deepEqual([on.enabled, on.disabled_reason, on.disabled_at], [true, null, null]);
    receiver.answer = status(204);
    await tested(as, id);
    await reaches(id, 'delivered', 1);
  });

  test('Part 3 Webhook: one success within 24 hours keeps an endpoint', async () => {
    const { id } = await subscribed(as, receiver.url);
    ground.clock.forward(20 * hourMs);
    receiver.answer = status(500);
    await tested(as, id);
    for (let attempt = 1; attempt < 8; attempt += 1) {
      await reaches(id, 'pending', attempt);
      if (attempt === 7) {
        receiver.answer = status(200);
        await tested(as, id);
        await reaches(id, 'delivered', 1);
        receiver.answer = status(500);
      }
      const next = (await deliveriesOf(as, id)).at(-1).next_at;
      ground.clock.forward(Date.parse(next) - ground.clock.date().getTime() + 1);
    }
    await until('it is exhausted', async () => {
      return (await deliveriesOf(as, id)).at(-1).state === 'exhausted';
    });
    assert.equal(good(await as.get(`/webhooks/${id}`)).enabled, true);
  });

  test('410 disables at once, and what was pending is dropped', async () => {
    receiver.answer = status(500);
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    await reaches(id, 'pending', 1);
    receiver.answer = status(410);
    const gone = await tested(as, id);
    await until('both are dropped', async () => {
      const states = (await deliveriesOf(as, id)).map(({ state }) => state);
      return states.join() === 'dropped,dropped';
    });
    const webhook = good(await as.get(`/webhooks/${id}`));
    assert.deepEqual([webhook.disabled_reason, webhook.last_status], ['failing', 410]);
    assert.deepEqual(receiver.ids.at(-1), gone.id);
  });

  test('429 and 503 with Retry-After put the next attempt off, never forward', async () => {
    for (const [answer, least] of [
      [status(429, { 'retry-after': '600' }), 600],
      [status(503, { 'retry-after': '5' }), 30],
    ] as const) {
      const slow = await another(answer);
      const { id } = await subscribed(as, slow.url);
      await tested(as, id);
      const { next_at, attempted_at } = await reaches(id, 'pending', 1);
      const waits = Date.parse(next_at) - Date.parse(attempted_at);
      assert.ok(waits >= least * secondMs && waits < (least + 60) * secondMs, `${waits}`);
    }
  });

  test('Part 4 Webhooks 8, Part 3 Webhook, Part 3 Delivery: disabled, what falls due is dropped and what does not stays', async () => {
    receiver.answer = status(500);
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    await reaches(id, 'pending', 1);
    good(await as.patch(`/webhooks/${id}`, { enabled: false }));
    good(await as.patch(`/webhooks/${id}`, { enabled: true }));
    assert.equal((await only(id)).state, 'pending', 'not due meanwhile');
    await passWait(id);
    await reaches(id, 'pending', 2);
    good(await as.patch(`/webhooks/${id}`, { enabled: false }));
    await passWait(id);
    const dropped = await reaches(id, 'dropped', 2);
    assert.deepEqual([dropped.next_at, dropped.last_error], [null, 'the subscription is disabled']);
    assert.equal(receiver.received.length, 2);
  });

  test('Part 3 Webhook, Part 6.1 4: what was queued is still delivered after a plan has ended', async () => {
    const { as: owner, account } = await ground.service.account();
    as = owner;
    receiver.answer = status(500);
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    await reaches(id, 'pending', 1);
    await ground.service.operator.setAccount(account.id, { plan: 'none' });
    assert.equal(good(await as.get(`/webhooks/${id}`)).disabled_reason, 'plan');
    receiver.answer = status(200);
    await passWait(id);
    await reaches(id, 'delivered', 2);
  });

  test('Part 4 Webhooks 11: two signatures for 24 hours after a rotation, the new one first, never three', async () => {
    const { id, secret: first } = await subscribed(as, receiver.url);
    const rotate = async () => good(await as.send('POST', `/webhooks/${id}/rotate`)).secret;
    const send = async () => {
      const { id: delivery } = await tested(as, id);
      await reaches(id, 'delivered');
      return until('it has arrived', () => receiver.received.find((r) => r.id === delivery));
    };
    const heldBy = (received: Receiver['received'][number], secret: string) => {
      try {
        return verifiedThen(secret, received) !== undefined;
      } catch {
        return false;
      }
    };
    const second = await rotate();
    let received = await send();
    const [newest, ...older] = String(received.headers['webhook-signature']).split(' ');
    assert.equal(older.length, 1);
    assert.ok(heldBy(received, first) && heldBy(received, second));
    const alone = { ...received, headers: { ...received.headers, 'webhook-signature': newest } };
    assert.deepEqual([heldBy(alone, second), heldBy(alone, first)], [true, false]);
    const third = await rotate();
    received = await send();
    assert.deepEqual(
      [first, second, third].map((secret) => heldBy(received, secret)),
      [false, true, true],
    );
    ground.clock.forward(24 * hourMs);
    received = await send();
    assert.deepEqual(
      [first, second, third].map((secret) => heldBy(received, secret)),
      [false, false, true],
    );
  });

  test('Part 6.1 3, Part 8 Sizes: four at a time for one subscription; a slow receiver delays nobody else', async () => {
    const hanging = new Set<() => void>();
    const slow = await another((_request, response) => void hanging.add(() => response.end()));
    const [one, two] = [await subscribed(as, slow.url), await subscribed(as, receiver.url)];
    // All are sent together, once they are there: ten seconds later the slow ones would be given up.
    const hold = async (time: string) => {
      const held = sql(`UPDATE webhook_lanes SET held_until = $1 WHERE webhook_id = ANY($2)`);
      await ground.service.database.run(held, [time, [one.id, two.id]]);
    };
    await hold('infinity');
    for (let n = 0; n < 12; n += 1) {
      await tested(as, one.id);
      await tested(as, two.id);
    }
    await hold('-infinity');
    await until('the other has all of its own', () => receiver.received.length === 12);
    await until('four are under way', async () => {
      const states = (await deliveriesOf(as, one.id)).map(({ state }) => state);
      return states.filter((state) => state === 'in_flight').length === 4;
    });
    assert.deepEqual([slow.open.most, slow.received.length], [4, 4]);
    await until('it has all of them', () => {
      for (const answer of hanging) answer();
      return slow.received.length >= 12;
    });
    assert.equal(slow.open.most, 4);
    await until('all are delivered', async () =>
      (await deliveriesOf(as, one.id)).every(({ state }) => state === 'delivered'),
    );
    assert.equal(new Set(slow.ids).size, 12);
  });

  test('Part 4 Webhooks 13, Part 8 Sizes: finished ones are kept seven days after they were queued, pending ones longer', async () => {
    const { database } = ground.service;
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    const { created_at } = await reaches(id, 'delivered');
    receiver.answer = status(500);
    await tested(as, id);
    await reaches(id, 'pending', 1);
    const sevenDays = (at: string, ms: number) => new Date(Date.parse(at) + ms);
    await trimDeliveries(database, sevenDays(created_at, 0));
    assert.equal((await deliveriesOf(as, id)).length, 2);
    await trimDeliveries(database, sevenDays(created_at, 60_000));
    const left = await deliveriesOf(as, id);
    assert.deepEqual(
      left.map(({ state }) => state),
      ['pending'],
    );
  });

  test('redelivery: a new delivery of the same event, of one or of a time range', async () => {
    const { id, secret } = await subscribed(as, receiver.url);
    const first = await tested(as, id);
    const done = await reaches(id, 'delivered');
    const path = `/webhooks/${id}/deliveries`;
    const repeated = good(await as.send('POST', `${path}/${first.id}/redeliver`), 202);
    assert.notEqual(repeated.id, first.id);
    assert.deepEqual([repeated.cursor, repeated.event_type], [first.cursor, first.event_type]);
    await until('it has arrived', () => receiver.received.length === 2);
    const [one, two] = receiver.received;
    assert.equal(one?.body, two?.body);
    assert.ok(one && two && one.id !== two.id && secret);
    await until('both are done', async () =>
      (await deliveriesOf(as, id)).every(({ state }) => state === 'delivered'),
    );
    const from = done.created_at;
    const range = async (body: object) =>
      good(await as.post(`/webhooks/${id}/redeliver`, body), 202);
    assert.deepEqual(await range({ from, to: from }), { queued: 0, next_from: null });
    assert.deepEqual(await range({ from, states: ['exhausted'] }), { queued: 0, next_from: null });
    assert.deepEqual(await range({ from }), { queued: 2, next_from: null });
    await until('they have arrived', () => receiver.received.length === 4);
    for (const bad of [
      {},
      { from: 'today' },
      { from: '2026-01-01T00:00:00' },
      { from, states: [] },
    ]) {
      assertRefused(await as.post(`/webhooks/${id}/redeliver`, bad), 400);
    }
    assertRefused(await as.send('POST', `${path}/whd-0000000000000000/redeliver`), 404);
    good(await as.patch(`/webhooks/${id}`, { enabled: false }));
    assertRefused(await as.send('POST', `${path}/${first.id}/redeliver`), 409);
    assertRefused(await as.post(`/webhooks/${id}/redeliver`, { from }), 409);
  });

  test('a lane whose holder died is taken over, and what was under way is sent again', async () => {
    const { database } = ground.service;
    const { id } = await subscribed(as, receiver.url);
    const dead = 'a process that is no more';
    await database.run(
      sql(`INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, state, attempts, next_at, created_at)
        VALUES ('whd-00000000000000aa', $1, 'computer.idle', 'vm-1', 'e:1', '{}', 'in_flight', 8, $2, $2)`),
      [id, ground.clock.date()],
    );
    await database.run(
      sql(`UPDATE webhook_lanes SET holder = $2, due_at = $3, held_until = clock_timestamp() - interval '1 s'
        WHERE webhook_id = $1`),
      [id, dead, ground.clock.date()],
    );
    await reaches(id, 'delivered', 8);
    assert.deepEqual(receiver.ids, ['whd-00000000000000aa']);
  });

  test('Part 4 Webhooks 10: a subscription deleted with attempts under way leaves nothing', async () => {
    const { database } = ground.service;
    const hanging: (() => void)[] = [];
    receiver.answer = (_request, response) => void hanging.push(() => response.end());
    const { id } = await subscribed(as, receiver.url);
    for (let n = 0; n < 6; n += 1) await tested(as, id);
    await until('four have arrived', () => receiver.received.length === 4);
    good(await as.delete(`/webhooks/${id}`));
    for (const answer of hanging) answer();
    await until('nothing is under way', () => receiver.open.now === 0);
    const rows = await database.run(sql('SELECT FROM webhook_deliveries WHERE webhook_id = $1'), [
      id,
    ]);
    assert.equal(rows.length, 0);
    assert.equal(receiver.received.length, 4);
  });

  test('Part 6.1 3: four at a time also where several servers share the queue, and each is sent once', async () => {
    const others = [await ground.service.beside(), await ground.service.beside()];
    try {
      const hanging = new Set<() => void>();
      receiver.answer = (_request, response) => void hanging.add(() => response.end());
      const { id } = await subscribed(as, receiver.url);
      for (let n = 0; n < 20; n += 1) await tested(as, id);
      await until('all have arrived', () => {
        for (const answer of hanging) answer();
        return receiver.received.length >= 20;
      });
      await until('all are delivered', async () =>
        (await deliveriesOf(as, id)).every(({ state }) => state === 'delivered'),
      );
      assert.equal(receiver.open.most, 4);
      assert.deepEqual([new Set(receiver.ids).size, receiver.received.length], [20, 20]);
    } finally {
      for (const other of others) await other.stop();
    }
  });

  test('a server with another keyring seals and sends nothing, and reads as before', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-foreign-'));
    const foreign = await ground.service.beside({ CUBICLE_KEYRING: join(folder, 'keyring') });
    try {
      const { account } = await ground.service.account();
      const { raw } = await ground.service.member(account.id, 'member');
      const own = await subscribed(ground.service.as(raw), receiver.url);
      const beside = foreign.as(raw);
      assertRefused(await beside.post('/webhooks', { url: receiver.url }), 503);
      assertRefused(await beside.send('POST', `/webhooks/${own.id}/rotate`), 503);
      good(await beside.get('/webhooks'));
      await tested(beside, own.id);
      await until('the other server sends it', () => receiver.received.length === 1);
      assert.equal(receiver.events(own.secret).length, 1);
    } finally {
      await foreign.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('what comes of attempts is counted by outcome', async () => {
    receiver.answer = status(500);
    const { id } = await subscribed(as, receiver.url);
    await tested(as, id);
    await reaches(id, 'pending', 1);
    const { text } = await as.get(`${ground.service.origin}/metrics`);
    assert.match(text, /cubicle_webhook_attempt_seconds_count\{outcome="status 5xx"\} [1-9]/);
  });
});
