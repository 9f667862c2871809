import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import {
  act,
  acted,
  clone,
  computer,
  finished,
  keepUnfinished,
  made,
  operation,
} from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

suite('lifecycle of computers', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const statuses: Record<string, (as: Client) => Promise<string>> = {
    running: async (as) => (await made(as)).id,
    stopped: async (as) => (await made(as, { start: false })).id,
    async suspended(as) {
      const { id } = await made(as);
      await acted(as, id, 'suspend');
      return id;
    },
    async building(as) {
      const source = await made(as, { start: false });
      service.host.engine.faults.put('copy', 'hang');
      return (await clone(as, source.id)).id;
    },
    async 'build-failed'(as) {
      const source = await made(as, { start: false });
      service.host.engine.faults.put('copy', 'before');
      const { id, operation_id } = await clone(as, source.id);
      await finished(as, operation_id);
      return id;
    },
    async 'half-removed'(as) {
      const { id } = await made(as);
      service.host.engine.faults.put('delete', 'half');
      assertRefused503(await as.delete(`/computers/${id}`));
      return id;
    },
  };

  const actions: Record<string, (as: Client, id: string) => Promise<Answer>> = {
    start: (as, id) => act(as, id, 'start'),
    'start?resume_only=true': (as, id) => act(as, id, 'start?resume_only=true'),
    stop: (as, id) => act(as, id, 'stop'),
    'stop?force=true': (as, id) => act(as, id, 'stop?force=true'),
    suspend: (as, id) => act(as, id, 'suspend'),
    restart: (as, id) => act(as, id, 'restart'),
    clone: (as, id) => as.post(`/computers/${id}/clone`, {}),
    resize: (as, id) => as.patch(`/computers/${id}`, { cpu: 2 }),
    delete: (as, id) => as.delete(`/computers/${id}`),
  };

  /** The status it has afterwards, or the reason of its 409. In the order of the actions. */
  const table: Record<string, string> = {
    running: 'running running stopped stopped suspended running 409:running 409:running gone',
    stopped: 'running stopped stopped stopped 409:unavailable running stopped stopped gone',
    suspended:
      'running running stopped stopped 409:unavailable 409:unavailable suspended stopped gone',
    building: '9 9 9 9 9 9 9 9 9'.replaceAll('9', '409:contention'),
    'build-failed': `${'9 9 9 9 9 9 9 9'.replaceAll('9', '409:unsupported')} gone`,
    'half-removed': `${'9 9 9 9 9 9 9 9'.replaceAll('9', '409:unsupported')} gone`,
  };

  test('wire-computers 5, Part 3 Computer: each action in each status', async (t) => {
    for (const [status, expected] of Object.entries(table)) {
      await t.test(status, () => eachAction(status, expected.split(' ')));
    }
  });

  async function eachAction(status: string, expected: readonly string[]): Promise<void> {
    const { as } = await service.account();
    for (const [n, [name, send]] of Object.entries(actions).entries()) {
      const then = expected[n] as string;
      const id = await (statuses[status] as (of: Client) => Promise<string>)(as);
      assert.equal((await computer(as, id)).status, status);
      const answer = await send(as, id);
      if (then.startsWith('409:')) {
        assertRefused(answer, 409, then.slice(4));
        assert.equal((await computer(as, id)).status, status, `${name} changes nothing`);
      } else if (then === 'gone') {
        assert.equal(answer.status, 200, answer.text);
        assertRefused(await as.get(`/computers/${id}`), 404);
      } else {
        assert.ok(answer.status < 300, `${name}: ${answer.text}`);
        assert.equal((await computer(as, id)).status, then, name);
      }
    }
  }

  test('wire-computers 5: an action answers ok and its operation, which says what was done', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    for (const kind of ['suspend', 'start', 'restart', 'stop', 'start']) {
      const body = await acted(as, id, kind);
      assert.deepEqual(body, { ok: true, operation_id: body.operation_id });
      const done = await operation(as, body.operation_id);
      assert.deepEqual(
        [done.kind, done.state, done.computer_id, done.error],
        [kind, 'succeeded', id, null],
      );
      assert.equal(done.finished_at, done.updated_at);
    }
    const { body } = await as.delete(`/computers/${id}`);
    assert.deepEqual(body, { ok: true, operation_id: body.operation_id });
    const done = await operation(as, body.operation_id);
    assert.deepEqual([done.kind, done.state, done.computer_id], ['delete', 'succeeded', id]);
    for (const send of Object.values(actions)) assertRefused(await send(as, id), 404);
    for (const send of Object.values(actions))
      assertRefused(await send(as, 'vm-000000000000'), 404);
  });

  test('wire-computers 5: resume_only and force take the word true alone', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    for (const action of ['start?resume_only', 'stop?force']) {
      for (const value of ['', 'false', '1', 'TRUE', 'true&force=true&resume_only=true']) {
        const answer = await act(as, id, `${action}=${value}`);
        assertRefused(answer, 400);
        assert.match(answer.body.error, /resume_only|force/);
      }
    }
    assert.equal((await computer(as, id)).status, 'running');
  });

  test('wire-computers 2: a saved session is told with its time, and discarded by a stop', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    const session = async () => service.host.engine.session(await service.host.instanceOf(id));
    const first = await session();
    await acted(as, id, 'suspend');
    const suspended = await computer(as, id);
    assert.match(suspended.suspended.at, /Z$/);
    assert.deepEqual([suspended.running_ram_mb, suspended.vnc], [0, undefined]);
    await acted(as, id, 'start?resume_only=true');
    assert.equal(await session(), first, 'the session goes on');
    assert.equal((await computer(as, id)).suspended, undefined);
    await acted(as, id, 'suspend');
    await acted(as, id, 'stop');
    assert.equal((await computer(as, id)).suspended, undefined);
    await acted(as, id, 'start');
    assert.notEqual(await session(), first);
  });

  test('wire-computers 2, wire-guest 10: restart and a workspace change give new credentials, stop and start keep them', async () => {
    const { as } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const { id, vnc } = await made(as);
    const now = async () => (await computer(as, id)).vnc;
    for (const action of ['suspend', 'start', 'stop', 'start']) await acted(as, id, action);
    assert.deepEqual(await now(), vnc);
    const credentials = [vnc];
    await acted(as, id, 'restart');
    credentials.push(await now());
    await acted(as, id, 'stop');
    await acted(as, id, 'restart');
    credentials.push(await now());
    await acted(as, id, 'stop');
    await as.put(`/computers/${id}/workspace`, { workspace_id: home });
    await acted(as, id, 'start');
    credentials.push(await now());
    for (const field of ['token', 'view_token', 'url', 'view_url', 'embed_url', 'events_url']) {
      assert.equal(new Set(credentials.map((given) => given[field])).size, 4, field);
    }
  });

  test('wire-computers 2, wire-guest 10, Part 2 Computer: a member gets all addresses, a viewer the watching ones', async () => {
    const { as, account } = await service.account();
    const { id, ...body } = await made(as);
    const viewer = await service.member(account.id, 'viewer');
    const { vnc, url, events_url, terminal_url } = await computer(as, id);
    assert.deepEqual({ vnc, url }, { vnc: body.vnc, url: body.url });
    assert.deepEqual([vnc.url, vnc.events_url, vnc.terminal_url], [url, events_url, terminal_url]);
    assert.ok(url.startsWith('ws://') && url.includes(id) && url.endsWith(`?token=${vnc.token}`));
    assert.ok(vnc.view_url.endsWith(vnc.view_token));
    assert.match(vnc.embed_url, /^http:.*#/);
    assert.ok(vnc.embed_url.split('#')[1].includes(vnc.view_token), 'in the fragment');
    const seen = await computer(viewer.as, id);
    // Each key is given credentials of its own, which end with it.
    assert.notEqual(seen.vnc.view_token, vnc.view_token);
    const own = (field: string) => vnc[field].replace(vnc.view_token, seen.vnc.view_token);
    assert.deepEqual(seen.vnc, {
      view_url: own('view_url'),
      view_token: own('view_token'),
      embed_url: own('embed_url'),
      clipboard: false,
    });
    assert.ok(!JSON.stringify(seen).includes(vnc.token));
    for (const field of ['url', 'events_url', 'terminal_url']) assert.equal(seen[field], undefined);
  });

  test('wire-computers 5, wire-computers 9, Part 3 Operation: what its host could not do is a failed operation', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const { faults } = service.host.engine;
    for (const [call, action, code, then] of [
      ['start', 'start', 'start_failed', 'stopped'],
      ['restart', 'restart', 'start_failed', 'stopped'],
      ['stop', 'stop', 'host_failed', 'running'],
      ['freeze', 'suspend', 'host_failed', 'running'],
    ] as const) {
      if (then === 'running') await acted(as, id, 'start');
      faults.put(call, 'before');
      const answer = await act(as, id, action);
      assertRefused(answer, 503, undefined, { operation_id: answer.body.operation_id });
      const failed = await operation(as, answer.body.operation_id);
      assert.deepEqual([failed.kind, failed.state, failed.error.code], [action, 'failed', code]);
      assert.equal((await computer(as, id)).status, then);
    }
    faults.put('stop', 'before', { kind: 'busy' });
    assertRefused(await act(as, id, 'stop'), 409, 'contention');
    await acted(as, id, 'stop');
    faults.put('start', 'before', { kind: 'room' });
    assertRefused(await act(as, id, 'start'), 503);
    await until('nothing is charged', async () => {
      const { usage } = (await as.get('/account')).body;
      return usage.running_or_reserved_ram_mb === 0;
    });
  });

  test('Part 7, wire-computers 5: while one operation is under way another is 409 contention', async () => {
    const { as, account } = await service.account();
    const { id } = await made(as);
    const workspace = (await as.post('/workspaces', { name: 'other' })).body.id;
    service.host.cable.fault('stop', 'unheard');
    const unheard = await as.send('POST', `/computers/${id}/stop`, {
      headers: { 'idempotency-key': 'slow' },
    });
    assert.equal(unheard.status, 503);
    await keepUnfinished(service, account.id);
    for (const action of ['start', 'stop', 'restart']) {
      assertRefused(await act(as, id, action), 409, 'contention');
    }
    assertRefused(await as.post(`/computers/${id}/clone`, {}), 409, 'contention');
    assertRefused(await as.patch(`/computers/${id}`, { cpu: 2 }), 409, 'contention');
    assertRefused(await as.delete(`/computers/${id}`), 409, 'contention');
    const move = await as.put(`/computers/${id}/workspace`, { workspace_id: workspace });
    assertRefused(move, 409, 'contention');
    assert.equal((await as.patch(`/computers/${id}`, { name: 'renamed' })).status, 200);
  });

  test('wire-computers 5: a host that is away is 503, and nothing is recorded', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    const recorded = (await as.get('/operations')).body;
    await service.host.cable.cut();
    for (const send of Object.values(actions)) assertRefused(await send(as, id), 503);
    assertRefused(await as.patch(`/computers/${id}`, { name: 'x' }), 503);
    assertRefused(await as.put(`/computers/${id}/workspace`, { workspace_id: null }), 503);
    await service.host.cable.mend();
    assert.deepEqual((await as.get('/operations')).body, recorded);
    assert.equal((await computer(as, id)).status, 'running');
  });
});

function assertRefused503(answer: Answer): void {
  assertRefused(answer, 503, undefined, { operation_id: answer.body.operation_id });
}
