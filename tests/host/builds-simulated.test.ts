import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { buildPhases, buildStepStatuses } from '../../packages/contract/host/builds.ts';
import { Builds } from '../../packages/host/builds/builds.ts';
import { SimulatedWorkshop } from '../../packages/host/builds/simulated-workshop.ts';
import { SimulatedEngine } from '../../packages/host/engine/simulated/engine.ts';
import { GuestLinks } from '../../packages/host/guest/links.ts';
import { LinkFolders } from '../../packages/host/link-folder.ts';
import { type RunningHost, startHost, type StartOptions } from '../../packages/host/main.ts';
import { ImagePreparing } from '../../packages/host/templates.ts';
import { apt, BuildOrders, env, file, finish, mkdir, run } from './build-orders.ts';

suite('builds on the simulated engine', () => {
  let dataDir: string;
  let host: RunningHost;
  let orders: BuildOrders;
  const live = { signal: new AbortController().signal };
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'cubicle-builds-'));
    host = await start();
    orders = new BuildOrders(dataDir);
  });
  after(async () => {
    await host.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const start = (wish: StartOptions = {}) => {
    const settings = { dataDir, cacheDir: dataDir, engine: 'simulated', pool: 0 } as const;
    return startHost(settings, () => {}, { log: () => {}, ...wish });
  };
  const engine = (): SimulatedEngine => {
    assert.ok(host.engine instanceof SimulatedEngine);
    return host.engine;
  };
  /** The daemon, its engine and what is remembered: all new. */
  const restart = async (wish?: StartOptions) => {
    await host.stop();
    host = await start(wish);
  };
  const instances = async () => (await engine().list(live)).length;
  /** Neither an instance nor a folder of a build that is not held. */
  const nothingLeft = async () => {
    const held = (await orders.list()).length;
    const computers = (await orders.report()).computers.length;
    assert.equal(await instances(), held + computers);
    assert.equal(readdirSync(join(dataDir, 'host/links')).length, held + computers);
  };
  const slow = [run('sleep 60'), finish()];

  test('Part 3 Build, Part 2 Build: phases and steps go forward, and every move is told', async () => {
    const steps = [
      apt('hello'),
      run('sleep 0.05'),
      mkdir('/srv/data'),
      file('/etc/motd', 'hi'),
      finish(),
    ];
    assert.deepEqual(await orders.order('b1', steps), { outcome: 'accepted' });
    const heard = await orders.follow('b1');
    const forward = (places: number[]) =>
      assert.deepEqual(
        places,
        places.toSorted((a, b) => a - b),
      );
    forward(heard.map(({ phase }) => buildPhases.indexOf(phase)));
    for (const i of steps.keys()) {
      const statuses = heard.map((told) => told.steps[i]?.status ?? 'unknown');
      forward(statuses.map((status) => buildStepStatuses.indexOf(status)));
    }
    const last = heard.at(-1);
    assert.equal(last?.status, 'succeeded');
    assert.equal(last.phase, 'published');
    assert.equal(last.step, 5);
    assert.equal(last.error, undefined);
    for (const step of last.steps) {
      assert.equal(step.status, 'done');
      assert.ok(Date.parse(step.finished_at ?? '') >= Date.parse(step.started_at ?? ''));
    }
    assert.deepEqual(await orders.list(), [{ id: 'b1', state: 'held' }]);
    await nothingLeft();
  });

  test('Part 4 Builds 10: computers are made from what a build made, and are nobody else’s', async () => {
    assert.deepEqual(await orders.create('vm-1', 'b1'), { outcome: 'done', status: 'stopped' });
    const made = (await engine().list(live)).find(({ labels }) => labels['computer'] === 'vm-1');
    assert.ok(made);
    assert.equal(engine().readFile(made.id, '/etc/motd'), 'hi');
    assert.equal(made.labels['build'], undefined);
    assert.deepEqual(
      (await orders.report()).computers.map(({ id }) => id),
      ['vm-1'],
    );
    const none = { outcome: 'refused', why: 'no_image' };
    assert.deepEqual(await orders.create('vm-2', 'none-such'), none);
  });

  test('a held build outlives the daemon, which then knows its outcome alone', async () => {
    await restart();
    assert.deepEqual(await orders.list(), [{ id: 'b1', state: 'held' }]);
    const told = await orders.tell('b1', '?after=100&wait_ms=60000');
    assert.equal(told?.status, 'succeeded');
    assert.equal(told.phase, 'unknown');
    assert.deepEqual(told.steps, []);
    assert.deepEqual(await orders.order('b1', slow), { outcome: 'accepted' });
    assert.deepEqual(await orders.list(), [{ id: 'b1', state: 'held' }]);
    assert.equal((await orders.create('vm-3', 'b1')).outcome, 'done');
  });

  test('a removed build is gone, and its computers stay', async () => {
    await orders.remove('b1');
    await orders.remove('b1');
    assert.equal(await orders.tell('b1'), undefined);
    assert.deepEqual(await orders.create('vm-4', 'b1'), { outcome: 'refused', why: 'no_image' });
    assert.equal((await orders.report()).computers.length, 2);
    await nothingLeft();
  });

  test('a failed step is the end of its build: its output told without secrets, the rest skipped', async () => {
    const steps = [
      env({ GREETING: 'hello' }),
      run('echo $GREETING\necho the $TOKEN is wrong\nexit 3'),
      finish(),
    ];
    const told = await orders.finished('b2', steps, { secrets: { TOKEN: 's3cr3t' } });
    assert.equal(told.status, 'failed');
    assert.equal(told.phase, 'failed');
    assert.equal(told.step, 2);
    assert.equal(told.error, 'hello\nthe *** is wrong');
    assert.match(told.note, /^Step 2 failed: exit code 3\.$/);
    assert.deepEqual(
      told.steps.map(({ status }) => status),
      ['done', 'failed', 'skipped'],
    );
    await nothingLeft();
    assert.deepEqual(await orders.list(), []);
  });

  test('Part 4 Builds 7: one at a time; the same id is the same build', async () => {
    assert.deepEqual(await orders.order('b3', slow), { outcome: 'accepted' });
    assert.deepEqual(await orders.order('b3', slow), { outcome: 'accepted' });
    const busy = { outcome: 'refused', why: 'busy' };
    assert.deepEqual(await orders.order('b4', slow), busy);
    assert.deepEqual(await orders.list(), [{ id: 'b3', state: 'running' }]);
    await orders.remove('b3');
    assert.equal(await orders.tell('b3'), undefined);
    await nothingLeft();
    const twice = await Promise.all(['again', 'again'].map((id) => orders.order(id, slow)));
    assert.deepEqual(twice, [{ outcome: 'accepted' }, { outcome: 'accepted' }]);
    await orders.remove('again');
    const both = await Promise.all(['b5', 'b6'].map((id) => orders.order(id, slow)));
    assert.deepEqual(both.map(({ outcome }) => outcome).toSorted(), ['accepted', 'refused']);
    for (const id of ['b5', 'b6']) await orders.remove(id);
    await nothingLeft();
  });

  test('what cannot be begun is refused, and nothing is done', async () => {
    const parent = { template: 'base', digest: 'of-yesterday' };
    const changed = { outcome: 'refused', why: 'parent_changed' };
    assert.deepEqual(await orders.order('b7', slow, { parent }), changed);
    const unknown = { template: 'none-such', digest: 'simulated' };
    assert.deepEqual(await orders.order('b7', slow, { parent: unknown }), changed);
    engine().faults.put('freeDiskGb', 'before', { kind: 'room' });
    assert.deepEqual(await orders.order('b7', slow), { outcome: 'refused', why: 'no_room' });
    assert.equal(await orders.tell('b7'), undefined);
    assert.equal((await orders.send('PUT', '/builds/b7', { steps: [] })).status, 400);
    assert.equal((await orders.send('PUT', '/builds/no%20id', {})).status, 400);
  });

  test('an order whose parent’s image is being made is refused', async () => {
    const preparing = new ImagePreparing({ state: 'preparing', error: '' });
    const builds = new Builds({
      engine: engine(),
      links: new GuestLinks(),
      folders: new LinkFolders(join(dataDir, 'none')),
      agentDir: dataDir,
      workshop: new SimulatedWorkshop(engine()),
      templates: { names: ['tiling'], imageOf: () => Promise.reject(preparing) },
      log: () => {},
    });
    const parent = { template: 'tiling', digest: 'simulated-tiling' };
    const shape = { cpu: 1, ram_mb: 512, disk_gb: 10 };
    assert.deepEqual(await builds.order(live, 'b7', { parent, shape, steps: [], secrets: {} }), {
      outcome: 'refused',
      why: 'image_preparing',
    });
    assert.deepEqual(builds.list(), { builds: [] });
  });

  for (const call of ['create', 'start', 'stop', 'change'] as const) {
    for (const fault of ['before', 'after', 'half'] as const) {
      test(`a build whose ${call} fails ${fault} leaves nothing`, async () => {
        engine().faults.put(call, fault);
        const told = await orders.finished(`f-${call}-${fault}`, [finish()]);
        assert.equal(told.status, 'failed');
        assert.equal(told.error, 'The host could not carry out the build.');
        await nothingLeft();
      });
    }
  }

  test('what could not be removed is removed before the next build', async () => {
    engine().faults.put('delete', 'before');
    const failing = [run('exit 1'), finish()];
    assert.equal((await orders.finished('b8', failing)).status, 'failed');
    await assert.rejects(nothingLeft);
    assert.equal((await orders.finished('b9', [finish()])).status, 'succeeded');
    await nothingLeft();
  });

  test('a build under way ends with the daemon', async () => {
    assert.deepEqual(await orders.order('b10', slow), { outcome: 'accepted' });
    await restart();
    assert.equal(await orders.tell('b10'), undefined);
    await nothingLeft();
  });

  test('a build that takes too long is ended', async () => {
    await restart({ longestBuildMs: 200 });
    const told = await orders.finished('b11', slow);
    assert.equal(told.status, 'failed');
    assert.equal(told.note, 'The build took longer than 40 minutes.');
    await nothingLeft();
  });
});
