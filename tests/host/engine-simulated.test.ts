/** Proves that the simulated engine does what every engine does, keeps a thousand, and fails as told. */
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { Context } from '../../packages/host/engine/engine.ts';
import {
  SimulatedEngine,
  type SimulatedOptions,
} from '../../packages/host/engine/simulated/engine.ts';
import { engineSuite, failsWith, type Ground, live, newId, specOf } from './engine-suite.ts';

const digest = 'simulated-image';
const files = { metadata: '/nowhere/metadata.tar', rootfs: '/nowhere/root.squashfs' };

async function open(): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-simulated-'));
  // As the real engine has: enough for a call to be cut off in the middle.
  const delaysMs = { create: 20, copy: 20, start: 20, freeze: 20, stop: 20, delete: 20 };
  let engine = new SimulatedEngine({ folder, delaysMs });
  await engine.importImage(live, digest, files);
  return {
    digest,
    files,
    get engine() {
      return engine;
    },
    write: async (id, path, text) => engine.writeFile(id, path, text),
    read: async (id, path) => engine.readFile(id, path),
    session: async (id) => engine.session(id),
    async crash() {
      engine = new SimulatedEngine({ folder, delaysMs });
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

engineSuite('the simulated engine', open);

async function fresh(
  t: TestContext,
  options: Omit<SimulatedOptions, 'folder'> = {},
): Promise<{ engine: SimulatedEngine; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-simulated-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const engine = new SimulatedEngine({ ...options, folder });
  await engine.importImage(live, digest, files);
  return { engine, folder };
}

test('a thousand instances are made, started, listed and found again', async (t) => {
  const { engine, folder } = await fresh(t);
  const ids = Array.from({ length: 1_000 }, newId);
  await Promise.all(
    ids.map(async (id) => {
      await engine.create(live, specOf(id), digest);
      await engine.start(live, id);
    }),
  );
  const again = new SimulatedEngine({ folder });
  const listed = await again.list(live);
  assert.deepEqual(new Set(listed.map(({ id }) => id)), new Set(ids));
  assert.ok(listed.every(({ status }) => status === 'running'));
});

test('a record that was being written when its writer died is as it was before', async (t) => {
  const { engine, folder } = await fresh(t);
  const id = newId();
  await engine.create(live, specOf(id), digest);
  await appendFile(join(folder, 'instances.jsonl'), `{"key":"${id}","item":{"id":`);
  const again = new SimulatedEngine({ folder });
  assert.equal((await again.get(live, id))?.status, 'stopped');
  await again.start(live, id);
  assert.equal((await new SimulatedEngine({ folder }).get(live, id))?.status, 'running');
});

test('a fault before the effect leaves nothing, one after it leaves everything', async (t) => {
  const { engine } = await fresh(t);
  const id = newId();
  engine.faults.put('create', 'before', { kind: 'room' });
  await assert.rejects(engine.create(live, specOf(id), digest), failsWith('room'));
  assert.equal(await engine.get(live, id), undefined);
  engine.faults.put('create', 'after');
  await assert.rejects(engine.create(live, specOf(id), digest), failsWith('failed'));
  assert.equal((await engine.get(live, id))?.status, 'stopped');
  await engine.create(live, specOf(id), digest);
});

test('a change cut in the middle leaves something broken that repeating completes', async (t) => {
  const { engine } = await fresh(t);
  const [id, copy] = [newId(), newId()];
  engine.faults.put('create', 'half');
  await assert.rejects(engine.create(live, specOf(id), digest), failsWith('failed'));
  assert.equal((await engine.get(live, id))?.status, 'broken');
  await assert.rejects(engine.start(live, id), failsWith('failed'));
  await engine.create(live, specOf(id), digest);
  assert.equal((await engine.get(live, id))?.status, 'stopped');
  engine.faults.put('copy', 'half');
  await assert.rejects(engine.copy(live, specOf(copy), id), failsWith('failed'));
  await engine.copy(live, specOf(copy), id);
  engine.faults.put('delete', 'half');
  await assert.rejects(engine.delete(live, id), failsWith('failed'));
  assert.equal((await engine.get(live, id))?.status, 'broken');
  await engine.delete(live, id);
  assert.equal(await engine.get(live, id), undefined);
});

test('a call that hangs or loses its answer ends when its caller gives up', async (t) => {
  const { engine } = await fresh(t);
  const id = newId();
  await engine.create(live, specOf(id), digest);
  for (const [fault, status] of [
    ['hang', 'stopped'],
    ['lost', 'running'],
  ] as const) {
    engine.faults.put('start', fault);
    const aborting = new AbortController();
    const context: Context = { signal: aborting.signal };
    const call = engine.start(context, id);
    const silent = await Promise.race([call.then(() => 'answered'), engine.list(live)]);
    assert.notEqual(silent, 'answered');
    aborting.abort();
    await assert.rejects(call, { name: 'AbortError' });
    assert.equal((await engine.get(live, id))?.status, status);
  }
});

test('a fault meets as many calls as it is put in the way of', async (t) => {
  const { engine } = await fresh(t);
  engine.faults.put('list', 'before', { times: 2 });
  await assert.rejects(engine.list(live), failsWith('failed'));
  await assert.rejects(engine.list(live), failsWith('failed'));
  assert.deepEqual(await engine.list(live), []);
  engine.faults.put('list', 'before');
  engine.faults.clear();
  assert.deepEqual(await engine.list(live), []);
});

test('delays and capacity are as configured', async (t) => {
  const capacity = { cpu: 4, ramMb: 8_192, diskGb: 100 };
  const { engine } = await fresh(t, { capacity, delaysMs: { capacity: 30 } });
  const answers: string[] = [];
  const slow = engine.capacity(live).then((answer) => {
    answers.push('capacity');
    return answer;
  });
  await engine.list(live).then(() => answers.push('list'));
  assert.deepEqual(await slow, capacity);
  assert.deepEqual(answers, ['list', 'capacity']);
});
