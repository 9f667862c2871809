import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { webhookEvents } from '../../packages/contract/events.ts';
import { sql } from '../../packages/server/db/database.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import {
  deliveriesOf,
  good,
  subscribed,
  tested,
  webhookGround,
  type WebhookGround,
} from '../support/webhooks.ts';
import type { TestService } from '../support/service.ts';

const url = 'https://127.0.0.1:9/hook';

suite('webhooks', () => {
  let service: TestService;
  let ground: WebhookGround;
  before(async () => {
    // Nothing is delivered here, so that what is queued stays.
    ground = await webhookGround({ webhooks: { work: false } });
    ({ service } = ground);
  });
  after(() => ground.stop());

  test('Part 2 Webhook, Part 3 Webhook, wire-account 8: create answers 201 with everything and its secret, once', async () => {
    const { as } = await service.account();
    const made = await as.post('/webhooks', { url: 'https://127.0.0.1:443' });
    assert.equal(made.status, 201);
    const { secret, id, created_at, updated_at, ...rest } = made.body;
    assert.match(id, /^whk-[0-9a-f]{16}$/);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(created_at, updated_at);
    assert.deepEqual(rest, {
      url: 'https://127.0.0.1/',
      description: '',
      events: [],
      computers: [],
      enabled: true,
      disabled_reason: null,
      disabled_at: null,
      last_success_at: null,
      last_failure_at: null,
      last_status: null,
    });
    const { secret: _, ...kept } = made.body;
    assert.deepEqual(good(await as.get(`/webhooks/${id}`)), kept);
    assert.deepEqual(good(await as.get('/webhooks')), [kept]);
    const off = await subscribed(as, url, { enabled: false });
    assert.deepEqual([off.enabled, off.disabled_reason], [false, 'customer']);
    assert.equal(off.disabled_at, off.created_at);
  });

  test('Part 4 Webhooks 1, Part 7: bad addresses are 400 and say what is wrong', async () => {
    const { as } = await service.account();
    for (const bad of [
      'http://example.com/',
      'https://u:p@127.0.0.1/',
      'https://10.0.0.1/',
      'https://[::1]/',
      'nonsense',
      `https://127.0.0.1/${'x'.repeat(2_048)}`,
    ]) {
      assertRefused(await as.post('/webhooks', { url: bad }), 400);
    }
    const unresolved = await as.post('/webhooks', { url: 'https://nowhere.invalid/' });
    assertRefused(unresolved, 400);
    assert.equal(unresolved.body.error, 'nowhere.invalid did not resolve');
    for (const bad of [undefined, null, 7, [url], {}]) {
      assertRefused(await as.post('/webhooks', { url: bad }), 400);
    }
    assertRefused(await as.post('/webhooks', { url, color: 'red' }), 400);
    assert.deepEqual(good(await as.get('/webhooks')), []);
  });

  test('Part 4 Webhooks 2, Part 4 Webhooks 3: filters, their vocabulary and bounds', async () => {
    const { as } = await service.account();
    const all = await subscribed(as, url, { events: [...webhookEvents, 'computer.idle'] });
    assert.deepEqual(all.events, webhookEvents);
    for (const events of [
      ['file.changed'],
      ['gap'],
      ['computer.idle', 'x'],
      'computer.idle',
      [1],
    ]) {
      const refused = await as.post('/webhooks', { url, events });
      assertRefused(refused, 400);
      if (events.length > 0 && Array.isArray(events) && events[0] !== 1)
        for (const type of webhookEvents) assert.ok(refused.body.error.includes(type), type);
    }
    const ids = Array.from({ length: 64 }, (_, n) => `vm-${n}`);
    const narrow = await subscribed(as, url, { computers: ids });
    assert.deepEqual(narrow.computers, ids);
    const twice = await subscribed(as, url, { computers: ['a', 'b', 'a'] });
    assert.deepEqual(twice.computers, ['a', 'b']);
    for (const computers of [
      // Counted before repeats are taken out.
      [...ids, 'vm-1'],
      [''],
      ['x'.repeat(65)],
      ['a\0'],
      'vm-1',
      [null],
    ]) {
      assertRefused(await as.post('/webhooks', { url, computers }), 400);
    }
    await subscribed(as, url, { computers: ['x'.repeat(64)] });
  });

  test('Part 4 Webhooks 4, Part 4 Webhooks 5, Part 4 Webhooks 6: enabled, description, body cap', async () => {
    const { as } = await service.account();
    const { id } = await subscribed(as, url, { description: 'x'.repeat(200), enabled: true });
    for (const description of ['x'.repeat(201), '🧊'.repeat(101), 7, null, 'a\0']) {
      assertRefused(await as.post('/webhooks', { url, description }), 400);
    }
    await subscribed(as, url, { description: '🧊'.repeat(100) });
    for (const enabled of ['true', 1, null]) {
      assertRefused(await as.post('/webhooks', { url, enabled }), 400);
    }
    for (const [method, path, status] of [
      ['POST', '/webhooks', 201],
      ['PATCH', `/webhooks/${id}`, 200],
    ] as const) {
      const padded = (size: number) => {
        const text = JSON.stringify({ url });
        return `${text.slice(0, -1)}${' '.repeat(size - text.length)}}`;
      };
      assert.equal((await as.send(method, path, { raw: padded(16_384) })).status, status);
      const refused = await as.send(method, path, { raw: padded(16_385) });
      assertRefused(refused, 413);
      assert.match(refused.body.error, /16384/);
    }
  });

  test('Part 4 Webhooks 7, Part 7 Conflicts 4, Part 8 Sizes: ten per account, whichever key asks, also at once', async () => {
    const { as, account } = await service.account();
    const workspace = good(await as.post('/workspaces', { name: 'home' })).id;
    const confined = await service.member(account.id, 'member', { workspace });
    for (let n = 0; n < 6; n += 1) await subscribed(n % 2 === 0 ? as : confined.as, url);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        (n % 2 === 0 ? as : confined.as).post('/webhooks', { url, enabled: false }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 4);
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      assertRefused(answer, 409);
      assert.match(answer.body.error, /10/);
    }
  });

  test('Part 4 Webhooks 8, Part 3 Webhook: PATCH changes what it names and nothing else', async () => {
    const { as } = await service.account();
    const made = await subscribed(as, url, { description: 'one', events: ['computer.idle'] });
    const path = `/webhooks/${made.id}`;
    const patch = async (body: object) => good(await as.patch(path, body));
    assertRefused(await as.patch(path, {}), 400);
    assertRefused(await as.patch(path, { color: 'red' }), 400);
    assertRefused(await as.patch(path, { url: 'https://10.0.0.1/' }), 400);
    assertRefused(await as.patch(path, { url: null }), 400);
    const { secret: _, updated_at, ...unchanged } = made;
    const { updated_at: later, ...same } = await patch({ description: 'one' });
    assert.deepEqual(same, unchanged);
    assert.ok(later >= updated_at);
    assert.deepEqual((await patch({ events: [] })).events, []);
    assert.equal((await patch({ description: '' })).description, '');
    assert.deepEqual((await patch({ computers: ['vm-1'] })).computers, ['vm-1']);
    assert.equal((await patch({ url: 'https://127.0.0.1:444' })).url, 'https://127.0.0.1:444/');
    const off = await patch({ enabled: false });
    assert.deepEqual([off.enabled, off.disabled_reason], [false, 'customer']);
    assert.equal((await patch({ enabled: false })).disabled_at, off.disabled_at);
    const on = await patch({ enabled: true });
    assert.deepEqual([on.enabled, on.disabled_reason, on.disabled_at], [true, null, null]);
    assert.equal('secret' in on, false);
  });

  test('Part 4 Webhooks 9, Part 3 Webhook, Part 6.1 4: without a plan 402, and what still works', async () => {
    const { as, account } = await service.account();
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.push((await subscribed(as, url)).id);
    const [first = '', second = '', third = ''] = ids;
    await as.patch(`/webhooks/${third}`, { enabled: false });
    await service.operator.setAccount(account.id, { plan: 'none' });
    const read = async (id: string) => good(await as.get(`/webhooks/${id}`));
    const reasons = async () =>
      Promise.all(ids.map(async (id) => (await read(id)).disabled_reason));
    assert.deepEqual(await reasons(), ['plan', 'plan', 'customer']);
    for (const refused of [
      await as.post('/webhooks', { url }),
      // Before anything is looked up.
      await as.post('/webhooks', { url: 'https://nowhere.invalid/' }),
      await as.patch(`/webhooks/${first}`, { url }),
      await as.patch(`/webhooks/${first}`, { enabled: true }),
      await as.patch(`/webhooks/${first}`, { description: 'changed', enabled: true }),
      await as.send('POST', `/webhooks/${first}/test`),
    ]) {
      assertRefused(refused, 402);
    }
    assert.equal((await read(first)).description, '');
    good(
      await as.patch(`/webhooks/${first}`, { description: 'changed', events: ['computer.idle'] }),
    );
    good(await as.send('POST', `/webhooks/${first}/rotate`));
    good(await as.get('/webhooks'));
    good(await as.get(`/webhooks/${first}/deliveries`));
    good(await as.patch(`/webhooks/${second}`, { enabled: false }));
    assert.deepEqual(await reasons(), ['plan', 'customer', 'customer']);
    await service.operator.setAccount(account.id, { plan: 'solo' });
    assert.deepEqual(await reasons(), [null, 'customer', 'customer']);
    good(await as.delete(`/webhooks/${first}`));
  });

  test('Part 3 Webhook: a plan that returns enables the oldest first, as many as it allows', async () => {
    const { as, account } = await service.account('studio');
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await subscribed(as, url)).id);
    await service.operator.setAccount(account.id, { plan: 'none' });
    await service.operator.setPlan('solo', { max_webhooks: 3 });
    await service.operator.setAccount(account.id, { plan: 'solo' });
    const enabled = async () =>
      good(await as.get('/webhooks')).map(({ enabled: on }: { enabled: boolean }) => on);
    assert.deepEqual(await enabled(), [true, true, true, false, false]);
    // The plan itself can change too.
    await service.operator.setPlan('solo', { max_webhooks: 0 });
    assert.deepEqual(await enabled(), [false, false, false, false, false]);
    await service.operator.setPlan('solo', { max_webhooks: 10 });
    assert.deepEqual(await enabled(), [true, true, true, true, true]);
  });

  test('Part 4 Webhooks 10: delete takes the subscription and every record', async () => {
    const { as } = await service.account();
    const { id } = await subscribed(as, url);
    await tested(as, id);
    assert.deepEqual(good(await as.delete(`/webhooks/${id}`)), { ok: true });
    assertRefused(await as.get(`/webhooks/${id}`), 404);
    assertRefused(await as.get(`/webhooks/${id}/deliveries`), 404);
    assertRefused(await as.delete(`/webhooks/${id}`), 404);
    for (const table of ['webhook_deliveries', 'webhook_lanes']) {
      const rows = await service.database.run(sql(`SELECT FROM ${table} WHERE webhook_id = $1`), [
        id,
      ]);
      assert.equal(rows.length, 0, table);
    }
  });

  test('Part 4 Webhooks 11: rotate answers a new secret, which alone is not kept in clear', async () => {
    const { as } = await service.account();
    const { id, secret } = await subscribed(as, url);
    const rotated = good(await as.send('POST', `/webhooks/${id}/rotate`));
    assert.match(rotated.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.notEqual(rotated.secret, secret);
    const [row] = await service.database.run<{ text: string }>(
      sql('SELECT w::text AS text FROM webhooks w WHERE id = $1'),
      [id],
    );
    for (const shown of [secret, rotated.secret]) {
      const bytes = Buffer.from(shown.slice(6), 'base64');
      assert.ok(!row?.text.includes(bytes.toString('hex')) && !row?.text.includes(shown.slice(6)));
    }
  });

  test('Part 4 Webhooks 12, Part 2 WebhookDelivery, Part 3 Delivery: a test is accepted and recorded', async () => {
    const { as } = await service.account();
    const { id } = await subscribed(as, url);
    const answer = await as.send('POST', `/webhooks/${id}/test`);
    assert.equal(answer.status, 202);
    const { id: delivery, next_at, created_at, ...rest } = answer.body;
    assert.match(delivery, /^whd-[0-9a-f]{16}$/);
    assert.equal(next_at, created_at);
    assert.deepEqual(rest, {
      event_type: 'webhook.test',
      computer: '',
      cursor: `test:${delivery}`,
      state: 'pending',
      attempts: 0,
      attempted_at: null,
      last_status: null,
      last_error: null,
      delivered_at: null,
    });
    assert.deepEqual(await deliveriesOf(as, id), [answer.body]);
    await as.patch(`/webhooks/${id}`, { enabled: false });
    assertRefused(await as.send('POST', `/webhooks/${id}/test`), 409);
  });

  test('Part 1 Listings, Part 8 Sizes: the newest hundred deliveries, newest first', async () => {
    const { as } = await service.account();
    const { id } = await subscribed(as, url);
    await service.database.run(
      sql(`INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, next_at, created_at)
        SELECT 'whd-' || lpad(to_hex(n), 16, '0'), $1, 'computer.idle', 'vm-1', 'e:' || n, '{}', now(), now() + n * interval '1 s'
        FROM generate_series(1, 150) n`),
      [id],
    );
    const listed = await deliveriesOf(as, id);
    const cursors = listed.map(({ cursor }: { cursor: string }) => cursor);
    assert.deepEqual(
      cursors,
      Array.from({ length: 100 }, (_, n) => `e:${150 - n}`),
    );
  });

  test('Part 8 Rate: creating, rotating and testing cost 25, reading and changing 1', async () => {
    const { as, account } = await service.account();
    const { id } = await subscribed(as, url);
    const costOf = async (method: string, path: string, json?: object) => {
      const { as: fresh } = await service.member(account.id, 'member');
      const answer = await fresh.send(method, path, json === undefined ? {} : { json });
      assert.ok(answer.status < 300, answer.text);
      const { limit, remaining } = assertMetered(answer);
      return limit - remaining;
    };
    assert.equal(await costOf('POST', '/webhooks', { url }), 25);
    assert.equal(await costOf('POST', `/webhooks/${id}/rotate`), 25);
    assert.equal(await costOf('POST', `/webhooks/${id}/test`), 25);
    assert.equal(await costOf('GET', '/webhooks'), 1);
    assert.equal(await costOf('GET', `/webhooks/${id}/deliveries`), 1);
    assert.equal(await costOf('PATCH', `/webhooks/${id}`, { description: 'x' }), 1);
  });

  test('Part 2 Webhook, Part 5 2, Part 4 Workspaces 5: a confined key has its workspace’s, which go with it', async () => {
    const [{ as, account }, other] = [await service.account(), await service.account()];
    const workspace = good(await as.post('/workspaces', { name: 'home' })).id;
    const confined = await service.member(account.id, 'member', { workspace });
    const wide = await subscribed(as, url);
    const own = await subscribed(confined.as, url);
    assert.equal(own.workspace_id, workspace);
    assert.equal('workspace_id' in wide, false);
    const ids = async (who: typeof as) =>
      good(await who.get('/webhooks')).map(({ id }: { id: string }) => id);
    assert.deepEqual(await ids(confined.as), [own.id]);
    assert.deepEqual(await ids(as), [wide.id, own.id]);
    for (const [who, id] of [
      [confined.as, wide.id],
      [other.as, own.id],
      [as, 'whk-0000000000000000'],
      [as, 'nonsense'],
    ] as const) {
      const path = `/webhooks/${id}`;
      assertRefused(await who.get(path), 404);
      assertRefused(await who.patch(path, { description: 'taken over' }), 404);
      assertRefused(await who.delete(path), 404);
      assertRefused(await who.get(`${path}/deliveries`), 404);
      for (const verb of ['rotate', 'test']) {
        assertRefused(await who.send('POST', `${path}/${verb}`), 404);
      }
      assertRefused(await who.post(`${path}/redeliver`, { from: '2020-01-01T00:00:00Z' }), 404);
    }
    await tested(confined.as, own.id);
    assert.deepEqual(good(await as.delete(`/workspaces/${workspace}`)), {
      ok: true,
      revoked_keys: 1,
    });
    assert.deepEqual(await ids(as), [wide.id]);
    const left = await service.database.run(
      sql('SELECT FROM webhook_deliveries WHERE webhook_id = $1'),
      [own.id],
    );
    assert.equal(left.length, 0);
  });
});
