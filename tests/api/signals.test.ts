import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { newId } from '../../packages/server/app/secrets.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { acted, clone, computer, made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

suite('signals', () => {
  let service: TestService;
  let as: Client;
  before(async () => {
    service = await startService({ simulated: true });
    ({ as } = await service.account());
  });
  after(() => service.stop());

  const read = async (id: string, query = '') => {
    const answer = await as.get(`/computers/${id}/signals${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const since = (cursor: string) => `?since=${encodeURIComponent(cursor)}`;
  const told = (page: { events: { type: string; data: object }[] }) =>
    page.events.map(({ type, data }) => [type, data]);

  test('wire-computers 11: a baseline, and then what happens after it', async () => {
    const { id } = await made(as);
    for (const query of ['', '?since=', '?limit=7']) {
      const { cursor, ...rest } = await read(id, query);
      assert.deepEqual(rest, {
        computer: id,
        from: cursor,
        events: [],
        more: false,
        baseline: true,
        supported: [
          'process.exited',
          'computer.started',
          'computer.stopped',
          'computer.suspended',
          'computer.idle',
        ],
        retention: 'ephemeral',
      });
    }
    const { cursor } = await read(id);
    await acted(as, id, 'suspend');
    await acted(as, id, 'start');
    await acted(as, id, 'restart');
    await acted(as, id, 'stop');
    const page = await read(id, since(cursor));
    assert.deepEqual(told(page), [
      ['computer.suspended', { status: 'suspended', previous: 'running' }],
      ['computer.started', { status: 'running', previous: 'suspended' }],
      ['computer.started', { status: 'running', previous: 'running' }],
      ['computer.stopped', { status: 'stopped', previous: 'running' }],
    ]);
    assert.deepEqual(
      [page.from, page.cursor, page.more, page.baseline, 'gap' in page],
      [cursor, page.events.at(-1).cursor, false, false, false],
    );
    const { events, from, cursor: next } = await read(id, since(page.cursor));
    assert.deepEqual([events, from, next], [[], page.cursor, page.cursor]);
  });

  test('wire-computers 11: an answer of the engine that is older than a change tells nothing', async () => {
    const { id } = await made(as);
    const { cursor } = await read(id);
    const { engine, near } = service.host;
    const instance = await service.host.instanceOf(id);
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const get = engine.get.bind(engine);
    engine.get = async (...of) => {
      const found = await get(...of);
      if (of[1] !== instance) return found;
      asked.resolve();
      await answered.promise;
      return found;
    };
    const reading = near.computer(id);
    await asked.promise;
    engine.get = get;
    await acted(as, id, 'stop');
    answered.resolve();
    await reading;
    assert.deepEqual(told(await read(id, since(cursor))), [
      ['computer.stopped', { status: 'stopped', previous: 'running' }],
    ]);
  });

  test('wire-computers 11: a page is at most as long as asked, and says whether there is more', async () => {
    const { id } = await made(as);
    const { cursor } = await read(id);
    for (let i = 0; i < 3; i += 1) {
      await acted(as, id, 'stop');
      await acted(as, id, 'start');
    }
    const all = (await read(id, since(cursor))).events;
    assert.equal(all.length, 6);
    let at = cursor;
    const seen: object[] = [];
    for (const more of [true, false]) {
      const page = await read(id, `${since(at)}&limit=${more ? 4 : 2}`);
      assert.deepEqual([page.from, page.more], [at, more]);
      seen.push(...page.events);
      at = page.cursor;
    }
    assert.deepEqual(seen, all);
    for (const limit of ['0', '101', '-1', 'x', '1.5', '', '007']) {
      assertRefused(await as.get(`/computers/${id}/signals?limit=${limit}`), 400);
    }
    assertRefused(await as.get(`/computers/${id}/signals?since=${'x'.repeat(2_049)}`), 400);
    assert.equal((await read(id, `${since(cursor)}&limit=100`)).events.length, 6);
  });

  test('wire-computers 11: a cursor that was never given, or not for this computer, is a gap', async () => {
    const [{ id }, other] = [await made(as), await made(as)];
    const { cursor } = await read(id);
    const foreign = (await read(other.id)).cursor;
    for (const asked of ['x', foreign, `${cursor}0`, '0'.repeat(2_048)]) {
      const page = await read(id, since(asked));
      assert.deepEqual(
        [page.from, page.cursor, page.events, page.more, page.baseline],
        [cursor, cursor, [], false, false],
      );
      const { at, data, ...gap } = page.gap;
      assert.deepEqual(gap, { type: 'gap', cursor, computer: id, source: 'daemon' });
      assert.ok(typeof at === 'string' && typeof data.detail === 'string');
      assert.ok(!('gap' in (await read(id, since(data.oldest_cursor)))));
    }
  });

  test('wire-computers 11: commands that end, idle time, and only what the host itself saw', async () => {
    const { id } = await made(as);
    const agent = await service.host.agentOf(id);
    const { cursor } = await read(id);
    const command = { command: 'exit 3', background: true };
    const { pid, execution_id } = (await as.post(`/computers/${id}/exec`, command)).body;
    await until('its end is told', async () => (await read(id, since(cursor))).events.length === 1);
    // The guest's own word, which advances the cursor and is not on the page.
    await as.post(`/computers/${id}/exec`, { command: `touch ${agent.at('run/desktop-ready')}` });
    await until('it is ready', async () => (await service.host.near.computer(id))?.ready);
    const suspend = { kind: 'suspend', operation: newId('operation'), idle_s: 0 } as const;
    assert.equal((await service.host.command(id, suspend)).outcome, 'done');
    const page = await read(id, since(cursor));
    const idle = page.events[1].data.idle_seconds;
    assert.ok(Number.isInteger(idle) && idle >= 0);
    assert.deepEqual(told(page), [
      ['process.exited', { execution_id, pid, exit_code: 3 }],
      ['computer.idle', { idle_seconds: idle }],
      ['computer.suspended', { status: 'suspended', previous: 'running' }],
    ]);
    // Reading did not wake it.
    assert.equal((await computer(as, id)).status, 'suspended');
  });

  test('Part 8 Rate, wire-computers 11: costs 1; a clone that was made has not stopped', async () => {
    const { id } = await made(as, { start: false });
    const spent = async () => assertMetered(await as.get(`/computers/${id}/signals`)).remaining;
    const first = await spent();
    assert.ok(first - (await spent()) <= 1);
    const copy = await clone(as, id);
    await until('it is made', async () => (await computer(as, copy.id)).status === 'stopped');
    const { cursor } = await read(copy.id);
    const page = await read(copy.id, since(cursor.replace(/\d+$/, '0')));
    assert.deepEqual(page.events, []);
  });

  test('wire-computers 11: unreadable is 503, unknown is 404, never an empty page', async () => {
    const { id } = await made(as);
    assertRefused(await as.get('/computers/vm-000000000000/signals'), 404);
    await service.host.cable.cut();
    assertRefused(await as.get(`/computers/${id}/signals`), 503);
    await service.host.cable.mend();
    await read(id);
  });
});
