// Builds when processes die, hosts are away and answers are lost.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { BuildEvents } from '../support/build-events.ts';
import {
  begun,
  build,
  built,
  documentOf,
  ended,
  endSlowly,
  newDocument,
  progress,
  slowDocument,
} from '../support/builds.ts';
import { Ground } from '../support/process.ts';
import { startService, type TestService } from '../support/service.ts';
import { SimulatedHost } from '../support/simulated-host.ts';
import { until } from '../support/until.ts';

suite('builds that meet faults', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true, drainMs: 500 });
  });
  afterEach(() => endSlowly(service));
  after(() => service.stop());

  test('Part 3 Build: a server that is killed leaves its build to another, which tells how it ends', async (t) => {
    const { account, as, key } = await service.account();
    const ground = Ground.of(t);
    const settings = { DATABASE_URL: service.databaseUrl };
    const doomed = await ground.start(await ground.folder(), settings);
    const document = documentOf(account.id, [{ run: 'sleep 3' }, { run: 'sleep 1' }]);
    const { id } = await begun(doomed.as(key.raw), document);
    await until('it is at work', async () => (await progress(as, id)).phase === 'building');
    await doomed.kill('SIGKILL');
    // As after the ten seconds for which it still holds the build.
    await service.database.run(lapse, [id]);
    const events = BuildEvents.open(service, key.raw, id);
    const last = (await events.ended()).at(-1);
    assert.deepEqual([last?.type, last?.data.status], ['done', 'succeeded']);
    assert.deepEqual(
      last?.data.steps.map(({ status }: { status: string }) => status),
      ['done', 'done', 'done'],
    );
  });

  test('Part 1 Listings, Part 4 Builds 7: with its host away the list is 503, or short and says so; the build goes on', async () => {
    const { account, as, key } = await service.account();
    const first = await built(as, newDocument(account.id));
    const { id } = await begun(as, slowDocument(account.id));
    const events = BuildEvents.open(service, key.raw, id);
    await until('it is at work', async () => (await progress(as, id)).phase === 'building');
    await service.host.cable.cut();
    try {
      for (const query of ['', '?allow_partial=true', '?allow_partial=1&allow_partial=1']) {
        assertRefused(await as.get(`/builds${query}`), 503);
      }
      const short = await as.get('/builds?allow_partial=1');
      assert.deepEqual([short.body, short.headers['x-gc-incomplete']], [[], '0']);
      assert.equal((await as.get(`/builds/${id}`)).body.status, 'running');
      assertRefused(await build(as, newDocument(account.id)), 503);
      const other = await service.account();
      const none = await other.as.get('/builds');
      assert.deepEqual([none.body, none.headers['x-gc-incomplete']], [[], undefined]);
    } finally {
      await service.host.cable.mend();
    }
    await service.host.near.removeBuild(id, 30_000);
    assert.equal((await events.ended()).at(-1)?.data.status, 'failed');
    const whole = await as.get('/builds?allow_partial=1');
    assert.equal(whole.headers['x-gc-incomplete'], undefined);
    assert.deepEqual(
      whole.body.map((one: { id: string }) => one.id),
      [id, first.id],
    );
  });

  test('Part 4 Builds 8: what became of an order whose answer was lost is found out, and it counts whatever that is', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 1 });
    const { account, as } = await service.account('solo');
    service.host.cable.fault('build', 'unheard');
    const unheard = await build(as, newDocument(account.id));
    const { build_id } = unheard.body;
    assertRefused(unheard, 503, undefined, { build_id });
    assert.equal((await ended(as, build_id)).status, 'succeeded');
    assertRefused(await build(as, newDocument(account.id)), 429);
    await service.operator.setPlan('solo', { builds_per_day: 10 });
    service.host.cable.fault('build', 'unasked');
    const unasked = await build(as, newDocument(account.id));
    assertRefused(unasked, 503, undefined, { build_id: unasked.body.build_id });
    const told = await ended(as, unasked.body.build_id);
    assert.deepEqual([told.status, told.note], ['failed', 'The host never began with the build.']);
  });

  test('Part 3 Build, Part 7: without a host nothing is built; a host that is restarted has forgotten its build, and what it held stays', async () => {
    const other = await startService();
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-restarted-'));
    let host: SimulatedHost | undefined;
    try {
      const { account, as } = await other.account();
      assertRefused(await build(as, newDocument(account.id)), 501);
      host = await SimulatedHost.start(folder);
      await other.register(host.row);
      const document = newDocument(account.id);
      const kept = await built(as, document);
      const { id } = await begun(as, slowDocument(account.id));
      await until('it is at work', async () => (await progress(as, id)).phase === 'building');
      await host.stop();
      host = await SimulatedHost.start(folder);
      const told = await ended(as, id);
      assert.equal(told.status, 'failed');
      assert.match(told.note, /ended|restarted/);
      const { id: again } = await begun(as, document);
      assert.equal((await progress(as, again)).phase, 'reused');
      assert.deepEqual((await host.near.builds()).builds, [{ id: kept.id, state: 'held' }]);
    } finally {
      await host?.stop();
      await other.stop();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

const lapse = sql('UPDATE builds SET held_until = clock_timestamp() WHERE id = $1');
