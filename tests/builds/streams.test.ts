import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { after, afterEach, before, suite, test } from 'node:test';
import type { Authority } from '../../packages/server/app/authority.ts';
import { BuildStream } from '../../packages/server/app/build-stream.ts';
import { findBuild } from '../../packages/server/db/builds.ts';
import { only, sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { begun, built, endSlowly, newDocument, slowDocument } from '../support/builds.ts';
import { BuildEvents } from '../support/build-events.ts';
import { startService, type TestOptions, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const open = sql('SELECT count(*)::int AS count FROM build_streams WHERE account_id = $1');

suite('streams of builds', () => {
  let service: TestService;
  before(async () => {
    // Clients of `fetch` leave connections behind on which they never ask anything.
    const buildStreams = { keepAliveMs: 50 };
    service = await startService({ simulated: true, buildStreams, drainMs: 500 });
  });
  afterEach(() => endSlowly(service));
  after(() => service.stop());

  const streamsOf = async ({ database }: TestService, account: string) =>
    only(await database.run<{ count: number }>(open, [account])).count;

  test('Part 6.3: what moves is told as it moves, to two clients alike, and the end once', async (t) => {
    const { account, as, key } = await service.account();
    // It stands still before its steps and behind them until both clients were told of that.
    const [ahead, behind] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { engine } = service.host;
    const [start, stop] = [engine.start.bind(engine), engine.stop.bind(engine)];
    t.mock.method(engine, 'start', async (...call: Parameters<typeof start>) => {
      await ahead.promise;
      await start(...call);
    });
    t.mock.method(engine, 'stop', async (...call: Parameters<typeof stop>) => {
      await behind.promise;
      await stop(...call);
    });
    const { id } = await begun(as, newDocument(account.id));
    const clients = [1, 2].map(() => BuildEvents.open(service, key.raw, id));
    for (const events of clients) await events.first();
    ahead.resolve();
    for (const { all } of clients) {
      await until('the steps are done', () => all.some(({ data }) => data.phase === 'publishing'));
    }
    behind.resolve();
    for (const events of clients) {
      const all = await events.ended();
      assert.equal(all.at(-1)?.type, 'done');
      const states = all.slice(0, -1);
      assert.ok(states.length >= 3, JSON.stringify(all));
      for (const { type } of states) assert.equal(type, 'progress');
      for (const [i, { data }] of states.slice(1).entries()) {
        assert.notDeepEqual(data, states[i]?.data, 'nothing is told twice');
        assert.ok(data.updated_at >= states[i]?.data.updated_at);
      }
      const done = all.at(-1)?.data;
      assert.deepEqual([done.id, done.done, done.status], [id, true, 'succeeded']);
      assert.deepEqual(done, (await as.get(`/builds/${id}/progress`)).body);
    }
    await until('both have left', async () => (await streamsOf(service, account.id)) === 0);
  });

  test('Part 6.3: a finished build is one progress and one done, at once, and HEAD has the headers alone', async () => {
    const { account, as, key } = await service.account();
    const failing = newDocument(account.id);
    failing.spec.build.push({ run: 'exit 1' });
    const ends = [await built(as, newDocument(account.id)), await begun(as, failing)];
    for (const { id } of ends) {
      await until('it is over', async () => (await as.get(`/builds/${id}/progress`)).body.done);
      const answer = await as.get(`/builds/${id}/events`);
      assert.equal(answer.headers['content-type'], 'text/event-stream');
      const { body } = await as.get(`/builds/${id}/progress`);
      const data = `data: ${JSON.stringify(body)}\n\n`;
      assert.equal(answer.text, `event: progress\n${data}event: done\n${data}`);
      const head = await as.head(`/builds/${id}/events`);
      assert.deepEqual(
        [head.status, head.headers['content-type'], head.text],
        [200, 'text/event-stream', ''],
      );
      const all = await BuildEvents.open(service, key.raw, id).ended();
      assert.deepEqual(
        all.map(({ type }) => type),
        ['progress', 'done'],
      );
    }
    await until('nobody is left', async () => (await streamsOf(service, account.id)) === 0);
  });

  test('Part 6.3, Part 8 Sizes: an account holds eight streams over all servers, the ninth is 429, and one that leaves makes room', async () => {
    const { account, as, key } = await service.account();
    const beside = await service.beside();
    try {
      const { id } = await begun(as, slowDocument(account.id));
      const other = beside.as(key.raw);
      const streams = [1, 2, 3, 4, 5, 6, 7, 8].map((n) =>
        BuildEvents.open(n % 2 === 0 ? service : { baseUrl: beside.baseUrl }, key.raw, id),
      );
      for (const events of streams) await events.first();
      for (const client of [as, other]) {
        const ninth = await client.get(`/builds/${id}/events`);
        assertRefused(ninth, 429);
        assert.match(ninth.body.error, /at most 8 /);
        assert.match(ninth.headers['retry-after'] ?? '', /^[1-9]\d*$/);
        assert.equal((await client.get(`/builds/${id}/progress`)).status, 200);
      }
      streams[0]?.leave();
      await until('there is room again', async () => (await streamsOf(service, account.id)) === 7);
      const next = BuildEvents.open(service, key.raw, id);
      await next.first();
      for (const events of [...streams, next]) events.leave();
      await until('all have left', async () => (await streamsOf(service, account.id)) === 0);
    } finally {
      await beside.stop();
    }
  });

  test('Part 6.3, Part 5 7: a stream whose authority goes ends with an error that says so', async () => {
    const { account, as } = await service.account();
    const { id } = await begun(as, slowDocument(account.id));
    const ways = {
      key: async () => {
        const { raw, keyId } = await service.member(account.id, 'viewer');
        return { raw, end: () => service.operator.revokeKey(keyId), status: 401 };
      },
      membership: async () => {
        const { raw, email } = await service.member(account.id, 'viewer');
        const end = () => service.operator.removeMember(account.id, email);
        return { raw, end, status: 403 };
      },
      account: async () => {
        const { raw } = await service.member(account.id, 'viewer');
        const end = () => service.operator.setAccount(account.id, { suspended: true });
        return { raw, end, status: 403 };
      },
    };
    for (const [name, way] of Object.entries(ways)) {
      const { raw, end, status } = await way();
      const events = BuildEvents.open(service, raw, id);
      await events.first();
      await end();
      const last = (await events.ended()).at(-1);
      const { request_id, error, ...rest } = last?.data ?? {};
      assert.equal(last?.type, 'error', name);
      assert.deepEqual(rest, { status, reason: 'revoked' }, name);
      assert.equal(request_id, events.requestId);
      assert.equal(typeof error, 'string');
    }
  });

  test('Part 6.3: silence is filled with comments', async () => {
    const { account, as, key } = await service.account();
    const { id } = await begun(as, slowDocument(account.id));
    const events = BuildEvents.open(service, key.raw, id);
    await events.first();
    await until('three comments came', () => events.text.split(': keepalive\n\n').length > 3);
    assert.equal(events.all.filter(({ type }) => type === 'progress').length, events.moves());
    events.leave();
  });

  test('Part 6.3: a reader that does not read is kept nothing but the newest state for, and is cut when its time is over', async () => {
    const { account, as } = await service.account();
    const { id } = await begun(as, slowDocument(account.id));
    const row = await until('it is told', () => findBuild(service.database, account.id, id));
    let moves = 0;
    let reads = 0;
    let closed = 0;
    const stream = new BuildStream({
      authority: {} as Authority,
      buildId: id,
      requestId: 'one',
      gone: new AbortController().signal,
      read: async () => {
        reads += 1;
        return { ...row, moves, step: moves };
      },
      standing: async () => {},
      closed: () => (closed += 1),
      times: { openMs: 300, keepAliveMs: 60_000, probeMs: 500, goodbyeMs: 100 },
    });
    const events = stream[Symbol.asyncIterator]();
    const next = async () => String(Buffer.from((await events.next()).value ?? []));
    assert.match(await next(), /^event: progress\n.*"step":0,/);
    for (moves = 1; moves < 1_000; moves += 1) stream.wake();
    assert.equal(reads, 1, 'nothing is read before there is room for it');
    assert.match(await next(), /^event: progress\n.*"step":1000,/);
    await once(stream.cut, 'abort');
    assert.match(await next(), /^event: error\n/);
    assert.deepEqual(await events.next(), { done: true, value: undefined });
    assert.equal(closed, 1);
  });

  test('Part 6.3: a client that leaves is noticed although nothing moves, and one that only fell silent is told on', async () => {
    const other = await limited({ keepAliveMs: 3_600_000, probeMs: 50 });
    const { account, as, key } = await other.account();
    const { id } = await begun(as, slowDocument(account.id));
    const events = BuildEvents.open(other, key.raw, id);
    await events.first();
    events.leave();
    await until('it has left', async () => (await streamsOf(other, account.id)) === 0);
    const { hostname, port } = new URL(other.baseUrl);
    const socket = createConnection({ host: hostname, port: Number(port), allowHalfOpen: true });
    const credential = `Authorization: Bearer ${key.raw}`;
    socket.end(`GET /api/v1/builds/${id}/events HTTP/1.1\r\nHost: x\r\n${credential}\r\n\r\n`);
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await until('it is told', () => text.split(': keepalive').length > 3);
    await endSlowly(other);
    await until('it is told the end', () => text.includes('event: done'));
    socket.destroy();
    await other.stop();
  });

  test('Part 6.3: a stream that was open for its whole time ends with an error', async () => {
    const other = await limited({ openMs: 300 });
    const { account, as, key } = await other.account();
    const { id } = await begun(as, slowDocument(account.id));
    const last = (await BuildEvents.open(other, key.raw, id).ended()).at(-1);
    assert.equal(last?.type, 'error');
    assert.deepEqual(Object.keys(last?.data), ['request_id', 'error']);
    assert.equal((await as.get(`/builds/${id}`)).body.status, 'running');
    await endSlowly(other);
    await other.stop();
  });

  test('Part 6.3: a service that stops says so, and the build is followed by the next one', async () => {
    // With time for the last words, however slow the machine.
    const other = await startService({ simulated: true });
    const beside = await other.beside();
    const { account, as, key } = await other.account();
    const { id } = await begun(beside.as(key.raw), slowDocument(account.id));
    const events = BuildEvents.open(beside, key.raw, id);
    await events.first();
    await beside.stop();
    const last = (await events.ended()).at(-1);
    assert.equal(last?.type, 'error');
    assert.match(last?.data.error, /stopping/);
    assert.equal((await as.get(`/builds/${id}`)).body.status, 'running');
    const next = BuildEvents.open(other, key.raw, id);
    await next.first();
    await other.host.near.removeBuild(id, 30_000);
    assert.equal((await next.ended()).at(-1)?.data.status, 'failed');
    await other.stop();
  });

  const limited = (times: TestOptions['buildStreams'] & object) =>
    startService({ simulated: true, buildStreams: times, drainMs: 500 });
});
