import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import type { Client } from '../support/client.ts';
import { acted, made } from '../support/computers.ts';
import { Receiver } from '../support/receiver.ts';
import { SimulatedHost } from '../support/simulated-host.ts';
import { until } from '../support/until.ts';
import {
  deliveriesOf,
  good,
  subscribed,
  tested,
  webhookGround,
  type WebhookGround,
} from '../support/webhooks.ts';

const hourMs = 3_600_000;

suite('events on their way to webhooks', () => {
  let ground: WebhookGround;
  const receivers: Receiver[] = [];
  before(async () => {
    ground = await webhookGround({ simulated: true });
  });
  after(async () => {
    await ground.stop();
    for (const one of receivers) await one.stop();
  });

  const receiver = async () => {
    const started = await Receiver.start();
    receivers.push(started);
    return started;
  };
  const types = ({ received }: Receiver) => received.map(({ body }) => JSON.parse(body).type);
  /** Everything that the host told so far is in the queue. */
  const allRead = async () => {
    const { near } = ground.service.host;
    const signal = new AbortController().signal;
    let head: string | undefined;
    for (let more = true; more;) {
      const page = await near.events(head, { waitMs: 0, most: 500, signal });
      head = page.cursor;
      more = page.events.length > 0;
    }
    await until('the host is read to its end', async () => {
      const [row] = await ground.service.database.run<{ cursor: string }>(cursorOf, [near.id]);
      return row?.cursor === head;
    });
  };
  /** Everything that happened before has been passed on. */
  const settled = async (as: Client, own: Receiver, id: string) => {
    await allRead();
    const { id: last } = await tested(as, id);
    await until('a test arrives', () => own.ids.includes(last));
  };

  test('Part 6.1 1, Part 6.1 5, Part 2 WebhookDelivery: the body is the frame of the stream, and its cursor reads on from there', async () => {
    const { as } = await ground.service.account();
    const own = await receiver();
    const { id: webhook, secret } = await subscribed(as, own.url);
    const { id } = await made(as);
    await acted(as, id, 'suspend');
    await acted(as, id, 'start');
    await acted(as, id, 'stop');
    await until('all of it arrives', () => own.received.length === 4);
    const events = own.events(secret).toSorted((a, b) => a.seq - b.seq);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['computer.started', 'computer.suspended', 'computer.started', 'computer.stopped'],
    );
    // As the host frames them: the same bytes as a page of signals has.
    const first = events[0].cursor.replace(/\d+$/, '0');
    const page = await as.get(`/computers/${id}/signals?since=${encodeURIComponent(first)}`);
    for (const { body } of own.received) assert.ok(page.text.includes(body), body);
    const since = encodeURIComponent(events[1].cursor);
    const rest = good(await as.get(`/computers/${id}/signals?since=${since}`));
    assert.deepEqual(rest.events, events.slice(2));
    const listed = await deliveriesOf(as, webhook);
    assert.deepEqual(
      listed.map(({ computer }) => computer),
      [id, id, id, id],
    );
    const cursors = new Set(listed.map(({ cursor }) => cursor));
    for (const { cursor } of events) assert.ok(cursors.has(cursor));
  });

  test('Part 4 Webhooks 2, Part 4 Webhooks 3: by type, by computer, of one’s own account, while enabled', async () => {
    const [one, other] = [await ground.service.account(), await ground.service.account()];
    const [byType, byComputer, both, foreign, off] = [
      await receiver(),
      await receiver(),
      await receiver(),
      await receiver(),
      await receiver(),
    ];
    const { id: mine } = await made(one.as, { start: false });
    const { id: another } = await made(one.as, { start: false });
    const all = await subscribed(one.as, byType.url, { events: ['computer.stopped'] });
    await subscribed(one.as, byComputer.url, { computers: [mine] });
    await subscribed(one.as, both.url, { computers: [another], events: ['computer.stopped'] });
    await subscribed(other.as, foreign.url);
    await subscribed(one.as, off.url, { enabled: false });
    for (const id of [mine, another]) {
      await acted(one.as, id, 'start');
      await acted(one.as, id, 'stop');
    }
    await until(
      'all of it arrives',
      () => byType.received.length === 2 && both.received.length === 1,
    );
    await until('of one computer', () => byComputer.received.length === 2);
    await settled(one.as, byType, all.id);
    assert.deepEqual(types(byType), ['computer.stopped', 'computer.stopped', 'webhook.test']);
    assert.deepEqual(types(byComputer).toSorted(), ['computer.started', 'computer.stopped']);
    assert.ok(both.received.every(({ body }) => JSON.parse(body).computer === another));
    assert.deepEqual([foreign.received, off.received], [[], []]);
  });

  test('Part 4 Workspaces 4: events are heard by the workspace that the computer was in at the time', async () => {
    const { as, account } = await ground.service.account();
    const [a, b] = [
      good(await as.post('/workspaces', { name: 'a' })).id,
      good(await as.post('/workspaces', { name: 'b' })).id,
    ];
    const [inA, inB, wide] = [await receiver(), await receiver(), await receiver()];
    const keyA = await ground.service.member(account.id, 'member', { workspace: a });
    const keyB = await ground.service.member(account.id, 'member', { workspace: b });
    await subscribed(keyA.as, inA.url);
    await subscribed(keyB.as, inB.url);
    await subscribed(as, wide.url);
    const { id } = await made(as, { workspace_id: a, start: false });
    // Nobody reads meanwhile: all is told only when the computer is long elsewhere.
    await ground.service.database.run(
      sql(
        `UPDATE event_readers SET holder = 'nobody', held_until = clock_timestamp() + interval '1 hour'`,
      ),
      [],
    );
    await acted(as, id, 'start');
    await acted(as, id, 'stop');
    good(await as.put(`/computers/${id}/workspace`, { workspace_id: b }));
    await acted(as, id, 'start');
    await acted(as, id, 'suspend');
    await ground.service.database.run(sql('DELETE FROM event_readers'), []);
    await until('all of it arrives', () => wide.received.length === 4);
    await until('each hears its own', () => inA.received.length + inB.received.length === 4);
    assert.deepEqual(types(inA).toSorted(), ['computer.started', 'computer.stopped']);
    assert.deepEqual(types(inB).toSorted(), ['computer.started', 'computer.suspended']);
  });

  test('Part 6.1 4, Part 3 Webhook: computer.stopped for 24 hours after a plan has ended, and nothing else', async () => {
    const { as, account } = await ground.service.account();
    const own = await receiver();
    const webhook = await subscribed(as, own.url);
    const { id } = await made(as);
    await until('its start arrives', () => own.received.length === 1);
    await ground.service.operator.setAccount(account.id, { plan: 'none' });
    const host = (kind: 'stop' | 'start') =>
      ground.service.host.command(id, {
        operation: `op_${Math.random()}`,
        ...(kind === 'stop' ? { kind, force: true } : { kind, resume_only: false }),
      });
    await host('stop');
    await until('its stop arrives', () => own.received.length === 2);
    assert.equal(types(own)[1], 'computer.stopped');
    await host('start');
    ground.clock.forward(24 * hourMs);
    await host('stop');
    await allRead();
    await ground.service.operator.setAccount(account.id, { plan: 'swarm' });
    await host('start');
    await until('its next start arrives', () => own.received.length >= 3);
    await settled(as, own, webhook.id);
    assert.deepEqual(types(own).slice(2).toSorted(), ['computer.started', 'webhook.test']);
  });

  test('Part 6.1 1: what a host that was restarted may have missed is a gap, whatever the filter', async () => {
    const { service } = ground;
    const { as, account } = await service.account();
    const own = await receiver();
    const { id: webhook, secret } = await subscribed(as, own.url, { events: ['computer.idle'] });
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-restarted-'));
    let host = await SimulatedHost.start(folder);
    try {
      await service.register(host.row);
      const wish = { account_id: account.id, workspace_id: null, start: false };
      const earlier = await host.give(service.database, wish);
      await readBeyond(host, '');
      const [old] = await service.database.run<{ cursor: string }>(cursorOf, [host.row.id]);
      await host.stop();
      host = await SimulatedHost.start(folder);
      const later = await host.give(service.database, wish);
      await readBeyond(host, old?.cursor ?? '');
      await until('the gap arrives', () => own.received.length === 1);
      await settled(as, own, webhook);
      const [gap] = own.events(secret);
      assert.deepEqual(
        [gap.type, gap.computer, gap.source, 'seq' in gap],
        ['gap', earlier, 'daemon', false],
      );
      assert.equal(typeof gap.data.detail, 'string');
      const page = good(await as.get(`/computers/${earlier}/signals?since=${gap.cursor}`));
      assert.equal('gap' in page, false, 'its cursor is held');
      const [, delivery] = await deliveriesOf(as, webhook);
      assert.deepEqual(
        [delivery.event_type, delivery.computer, delivery.cursor],
        ['gap', earlier, gap.cursor],
      );
      assert.ok(
        !own.received.some(({ body }) => body.includes(later)),
        'made since: nothing missed',
      );
    } finally {
      await host.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });

  /** A host without events of its own tells where its journal stands once it is read. */
  function readBeyond({ row }: SimulatedHost, old: string): Promise<string> {
    return until('the host is read', async () => {
      const [found] = await ground.service.database.run<{ cursor: string }>(cursorOf, [row.id]);
      return found !== undefined && found.cursor !== old && found.cursor;
    });
  }
});

const cursorOf = sql('SELECT cursor FROM event_cursors WHERE host_id = $1');
