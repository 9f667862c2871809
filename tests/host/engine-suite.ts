/** What every engine must do, whatever runs the instances: one suite for the real and the simulated one. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import {
  type Context,
  type Engine,
  EngineError,
  type ImageFiles,
  type InstanceSpec,
} from '../../packages/host/engine/engine.ts';
import { until } from '../support/until.ts';

/** One engine with an image in it, and a look into its guests. */
export interface Ground {
  readonly engine: Engine;
  readonly digest: string;
  readonly files: ImageFiles;
  write(id: string, path: string, text: string): Promise<void>;
  read(id: string, path: string): Promise<string | undefined>;
  /** Something that lives in the guest's memory from one boot to its end. */
  session(id: string): Promise<string>;
  /** The engine dies without a word and comes back; `engine` is then the new one. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export const live: Context = { signal: new AbortController().signal };

export const newId = (): string => `cub-${randomBytes(6).toString('hex')}`;

export function specOf(id: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
  return {
    id,
    shape: { cpu: 1, ramMb: 128, diskGb: 1 },
    labels: { computer: `vm-${id}`, operation: 'op_1' },
    mounts: [],
    ...more,
  };
}

export const failsWith = (kind: EngineError['kind']) => (error: unknown) => {
  assert.ok(error instanceof EngineError, String(error));
  assert.equal(error.kind, kind, error.message);
  return true;
};

/** `ownTests` adds tests of one engine's own on the same ground. */
export function engineSuite<Own extends Ground>(
  name: string,
  open: () => Promise<Own>,
  ownTests: (groundOf: () => Own) => void = () => {},
): void {
  describe(name, () => {
    let ground: Own;
    before(async () => {
      ground = await open();
    });
    after(() => ground.close());

    /** Instances that the test leaves are deleted, so that each begins with none of its own. */
    const withIds = async (count: number, work: (...ids: string[]) => Promise<void>) => {
      const ids = Array.from({ length: count }, newId);
      try {
        await work(...ids);
      } finally {
        for (const id of ids) await ground.engine.delete(live, id);
      }
    };
    const statusOf = async (id: string) => (await ground.engine.get(live, id))?.status;
    const create = (id: string, more: Partial<InstanceSpec> = {}) =>
      ground.engine.create(live, specOf(id, more), ground.digest);

    test('an instance goes from its making to its end', () =>
      withIds(1, async (id = '') => {
        const { engine } = ground;
        await create(id);
        const made = { ...specOf(id), status: 'stopped' as const };
        const { mounts: _, ...expected } = made;
        assert.deepEqual(await engine.get(live, id), expected);
        const listed = await engine.list(live);
        assert.deepEqual(
          listed.find((instance) => instance.id === id),
          expected,
        );
        await engine.start(live, id);
        assert.equal(await statusOf(id), 'running');
        assert.ok((await engine.memoryInUse(live, id)) > 0);
        await engine.freeze(live, id);
        assert.equal(await statusOf(id), 'frozen');
        await engine.thaw(live, id);
        assert.equal(await statusOf(id), 'running');
        await engine.restart(live, id);
        assert.equal(await statusOf(id), 'running');
        await engine.stop(live, id, false);
        assert.equal(await statusOf(id), 'stopped');
        await engine.delete(live, id);
        assert.equal(await statusOf(id), undefined);
        assert.ok(!(await engine.list(live)).some((instance) => instance.id === id));
      }));

    test('every change may be repeated', () =>
      withIds(2, async (id = '', copy = '') => {
        const { engine, digest, files } = ground;
        const twice = async (change: () => Promise<void>) => {
          await change();
          await change();
        };
        await twice(() => engine.importImage(live, digest, files));
        await twice(() => create(id));
        await twice(() => engine.copy(live, specOf(copy), id));
        await twice(() => engine.start(live, id));
        const session = await ground.session(id);
        await engine.start(live, id);
        await engine.create(live, specOf(id), digest);
        assert.equal(
          await ground.session(id),
          session,
          'a repeated start or create changes nothing',
        );
        await twice(() => engine.change(live, id, { shape: { cpu: 2, ramMb: 192, diskGb: 2 } }));
        await twice(() => engine.change(live, id, { labels: { operation: 'op_2' } }));
        await twice(() => engine.freeze(live, id));
        await twice(() => engine.thaw(live, id));
        await twice(() => engine.restart(live, id));
        await twice(() => engine.stop(live, id, true));
        await twice(() => engine.delete(live, id));
        await twice(() => engine.delete(live, copy));
      }));

    test('an image is there until it is removed', async () => {
      const { engine, files } = ground;
      const digest = `other-${newId()}`;
      assert.equal((await engine.images(live)).includes(digest), false);
      await engine.importImage(live, digest, files);
      assert.equal((await engine.images(live)).includes(digest), true);
      await engine.removeImage(live, digest);
      await engine.removeImage(live, digest);
      assert.equal((await engine.images(live)).includes(digest), false);
      assert.equal(
        (await engine.images(live)).includes(ground.digest),
        true,
        'made of the same files',
      );
    });

    test('a copy has its source’s disk and from then on its own', () =>
      withIds(2, async (id = '', copy = '') => {
        const { engine } = ground;
        await create(id, { labels: { computer: 'source', only: 'there' } });
        await engine.start(live, id);
        await ground.write(id, '/root/before', 'of both');
        await engine.stop(live, id, false);
        await engine.copy(live, specOf(copy, { labels: { computer: 'copy' } }), id);
        assert.deepEqual((await engine.get(live, copy))?.labels, { computer: 'copy' });
        assert.equal(await statusOf(copy), 'stopped');
        await engine.start(live, id);
        await engine.start(live, copy);
        assert.equal(await ground.read(copy, '/root/before'), 'of both');
        await ground.write(copy, '/root/after', 'of the copy');
        await ground.write(id, '/root/before', 'of the source');
        assert.equal(await ground.read(id, '/root/after'), undefined);
        assert.equal(await ground.read(copy, '/root/before'), 'of both');
        await engine.delete(live, id);
        assert.equal(await ground.read(copy, '/root/after'), 'of the copy');
      }));

    test('a frozen source is copied and stays frozen; a running one is not copied', () =>
      withIds(2, async (id = '', copy = '') => {
        const { engine } = ground;
        await create(id);
        await engine.start(live, id);
        await assert.rejects(engine.copy(live, specOf(copy), id), failsWith('failed'));
        assert.equal(await statusOf(copy), undefined);
        await ground.write(id, '/root/text', 'kept');
        await engine.freeze(live, id);
        await engine.copy(live, specOf(copy), id);
        assert.equal(await statusOf(id), 'frozen');
        await engine.start(live, copy);
        assert.equal(await ground.read(copy, '/root/text'), 'kept');
      }));

    test('a session lives through freeze and thaw, and ends with a restart', () =>
      withIds(1, async (id = '') => {
        const { engine } = ground;
        await create(id);
        await engine.start(live, id);
        const session = await ground.session(id);
        await engine.freeze(live, id);
        await engine.thaw(live, id);
        assert.equal(await ground.session(id), session);
        await engine.freeze(live, id);
        await engine.start(live, id);
        assert.equal(await ground.session(id), session, 'a start of a frozen one is a thaw');
        await engine.restart(live, id);
        assert.notEqual(await ground.session(id), session);
        await engine.freeze(live, id);
        await engine.stop(live, id, false);
        assert.equal(await statusOf(id), 'stopped', 'a frozen one stops by force');
        await engine.restart(live, id);
        assert.equal(await statusOf(id), 'running', 'a restart of a stopped one is a start');
      }));

    test('what is stopped can be neither frozen nor thawed', () =>
      withIds(1, async (id = '') => {
        await create(id);
        await assert.rejects(ground.engine.freeze(live, id), failsWith('failed'));
        await assert.rejects(ground.engine.thaw(live, id), failsWith('failed'));
        assert.equal(await statusOf(id), 'stopped');
      }));

    test('a resize goes either way for CPU and memory and upward for the disk', () =>
      withIds(1, async (id = '') => {
        const { engine } = ground;
        await create(id);
        const shape = { cpu: 2, ramMb: 256, diskGb: 3 };
        await engine.change(live, id, { shape });
        await engine.start(live, id);
        await engine.change(live, id, { shape: { ...shape, cpu: 1, ramMb: 192 } });
        assert.deepEqual((await engine.get(live, id))?.shape, { ...shape, cpu: 1, ramMb: 192 });
        await assert.rejects(
          engine.change(live, id, { shape: { ...shape, diskGb: 2 } }),
          failsWith('failed'),
        );
        assert.equal((await engine.get(live, id))?.shape.diskGb, 3);
      }));

    test('labels are added to and replaced, and outlive a crash as the guests do', () =>
      withIds(2, async (id = '', idle = '') => {
        await create(id);
        await create(idle);
        await ground.engine.start(live, id);
        const session = await ground.session(id);
        await ground.engine.change(live, id, {
          labels: {
            operation: 'op_2',
            'suspended-at': 'a day, at noon',
          },
        });
        const labels = {
          computer: `vm-${id}`,
          operation: 'op_2',
          'suspended-at': 'a day, at noon',
        };
        await ground.crash();
        const listed = await until('the engine answers again', () => ground.engine.list(live));
        const found = listed.find((instance) => instance.id === id);
        assert.deepEqual(found?.labels, labels);
        assert.equal(found?.status, 'running');
        assert.equal(await ground.session(id), session);
        assert.equal(await statusOf(idle), 'stopped');
      }));

    test('what is not there is said to be absent', async () => {
      const { engine, digest } = ground;
      const id = newId();
      assert.equal(await engine.get(live, id), undefined);
      await engine.delete(live, id);
      const calls: (() => Promise<unknown>)[] = [
        () => engine.start(live, id),
        () => engine.stop(live, id, true),
        () => engine.restart(live, id),
        () => engine.freeze(live, id),
        () => engine.thaw(live, id),
        () => engine.change(live, id, { labels: { a: 'b' } }),
        () => engine.change(live, id, { shape: { cpu: 1, ramMb: 128, diskGb: 1 } }),
        () => engine.memoryInUse(live, id),
        () => engine.copy(live, specOf(newId()), id),
        () => engine.create(live, specOf(id), `not-${digest}`),
      ];
      for (const call of calls) await assert.rejects(call, failsWith('absent'));
      assert.equal(await engine.get(live, id), undefined);
    });

    test('an aborted call does nothing more, and repeating it completes it', () =>
      withIds(2, async (id = '', copy = '') => {
        const { engine, digest } = ground;
        const gone: Context = { signal: AbortSignal.abort() };
        await assert.rejects(engine.create(gone, specOf(id), digest), { name: 'AbortError' });
        await assert.rejects(engine.list(gone), { name: 'AbortError' });
        assert.equal(await statusOf(id), undefined);
        await abortInside((context) => engine.create(context, specOf(id), digest));
        await create(id);
        assert.equal(await statusOf(id), 'stopped');
        await abortInside((context) => engine.copy(context, specOf(copy), id));
        await engine.copy(live, specOf(copy), id);
        await abortInside((context) => engine.start(context, id));
        await engine.start(live, id);
        assert.equal(await statusOf(id), 'running');
        await abortInside((context) => engine.freeze(context, id));
        await engine.freeze(live, id);
        assert.equal(await statusOf(id), 'frozen');
        await abortInside((context) => engine.stop(context, id, true));
        await engine.stop(live, id, true);
        await abortInside((context) => engine.delete(context, id));
        await engine.delete(live, id);
        assert.equal(await statusOf(id), undefined);
        await engine.start(live, copy);
      }));

    test('the same change asked for twice at once happens once', () =>
      withIds(1, async (id = '') => {
        await Promise.all([create(id), create(id), create(id)]);
        await Promise.all([ground.engine.start(live, id), ground.engine.start(live, id)]);
        assert.equal(await statusOf(id), 'running');
        await Promise.all([ground.engine.delete(live, id), ground.engine.delete(live, id)]);
        assert.equal(await statusOf(id), undefined);
      }));

    test('the machine’s capacity is told', async () => {
      const { cpu, ramMb, diskGb } = await ground.engine.capacity(live);
      assert.ok(cpu >= 1 && ramMb >= 512 && diskGb >= 1);
    });

    ownTests(() => ground);
  });
}

/** Cuts a call off at a few points of its way; it may also have been quicker. */
async function abortInside(call: (context: Context) => Promise<void>): Promise<void> {
  for (const delayMs of [1, 15, 60]) {
    const aborting = new AbortController();
    const timer = setTimeout(() => aborting.abort(), delayMs);
    try {
      await call({ signal: aborting.signal });
    } catch (error) {
      assert.ok(error instanceof Error);
      assert.equal(error.name, 'AbortError', String(error));
    } finally {
      clearTimeout(timer);
    }
  }
}
