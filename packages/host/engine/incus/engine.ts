/** Runs computers as system containers of Incus: puts changes in turn, repeats them, and lets callers go. */
import {
  type Capacity,
  type Change,
  type Context,
  type Engine,
  EngineError,
  type ImageFiles,
  type Instance,
  type InstanceSpec,
} from '../engine.ts';
import { Turns } from '../../turns.ts';
import type { IncusClient } from './client.ts';
import { findImage, importImage, listImages, removeImage } from './images.ts';
import { isWhole, labelConfig, limits, rootDisk, toInstance } from './instance.ts';
import { Instances, pathOf } from './instances.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { patiently } from './patience.ts';
import type { Place } from './place.ts';

/** The longest that the steps of a change may take together, above the client's bound for a single one. */
const changeMs = 900_000;

export class IncusEngine implements Engine {
  readonly kind = 'incus';
  readonly #client: IncusClient;
  readonly #place: Place;
  readonly #instances: Instances;
  readonly #turns = new Turns();
  readonly #closing = new AbortController();

  constructor(client: IncusClient, place: Place) {
    this.#client = client;
    this.#place = place;
    this.#instances = new Instances(client, place);
  }

  images(context: Context): Promise<string[]> {
    return patiently(context, () => listImages(context, this.#client));
  }

  importImage(context: Context, digest: string, files: ImageFiles): Promise<void> {
    return this.#change(context, `image ${digest}`, (steady) =>
      importImage(steady, this.#client, digest, files),
    );
  }

  removeImage(context: Context, digest: string): Promise<void> {
    return this.#change(context, `image ${digest}`, (steady) =>
      removeImage(steady, this.#client, digest),
    );
  }

  list(context: Context): Promise<Instance[]> {
    return patiently(context, async () => (await this.#instances.all(context)).map(toInstance));
  }

  get(context: Context, id: string): Promise<Instance | undefined> {
    return patiently(context, async () => {
      const found = await this.#instances.find(context, id);
      return found && toInstance(found);
    });
  }

  create(context: Context, spec: InstanceSpec, digest: string): Promise<void> {
    return this.#make(context, spec, async (steady) => {
      const fingerprint = await findImage(steady, this.#client, digest);
      if (fingerprint === undefined) throw new EngineError('absent', `no image ${digest}`);
      return { type: 'image', fingerprint };
    });
  }

  copy(context: Context, spec: InstanceSpec, source: string): Promise<void> {
    return this.#make(context, spec, async (steady) => {
      const { status } = await this.#instances.settled(steady, source);
      if (status === 'running') {
        throw new EngineError('failed', `${source} is running and cannot be copied`);
      }
      return { type: 'copy', source, instance_only: true };
    });
  }

  start(context: Context, id: string): Promise<void> {
    return this.#change(context, id, async (steady) => {
      const { status, pid } = await this.#instances.settled(steady, id);
      if (status === 'stopped') await this.#instances.boot(steady, id);
      else await this.#instances.wake(steady, id, pid);
    });
  }

  stop(context: Context, id: string, force: boolean): Promise<void> {
    return this.#change(context, id, (steady) => this.#instances.halt(steady, id, force));
  }

  restart(context: Context, id: string): Promise<void> {
    return this.#change(context, id, async (steady) => {
      await this.#instances.halt(steady, id, false);
      await this.#instances.boot(steady, id);
    });
  }

  freeze(context: Context, id: string): Promise<void> {
    return this.#change(context, id, async (steady) => {
      const { status, pid } = await this.#instances.settled(steady, id);
      if (status === 'stopped')
        throw new EngineError('failed', `${id} is stopped and cannot freeze`);
      if (status === 'running') await this.#instances.freeze(steady, id, pid);
    });
  }

  thaw(context: Context, id: string): Promise<void> {
    return this.#change(context, id, async (steady) => {
      const { status, pid } = await this.#instances.settled(steady, id);
      if (status === 'stopped') throw new EngineError('failed', `${id} is stopped and cannot thaw`);
      await this.#instances.wake(steady, id, pid);
    });
  }

  change(context: Context, id: string, { shape, labels = {} }: Change): Promise<void> {
    return this.#change(context, id, async (steady) => {
      if (shape === undefined) await this.#instances.existing(steady, id);
      else {
        const { shape: now } = toInstance(await this.#instances.sound(steady, id));
        if (shape.diskGb < now.diskGb) {
          throw new EngineError('failed', `the disk of ${id} cannot shrink from ${now.diskGb} GB`);
        }
      }
      await this.#client.change(steady, 'PATCH', pathOf(id), {
        config: { ...labelConfig(labels), ...(shape && limits(shape)) },
        ...(shape && { devices: { root: rootDisk(this.#place, shape) } }),
      });
    });
  }

  delete(context: Context, id: string): Promise<void> {
    return this.#change(context, id, async (steady) => {
      const found = await this.#instances.find(steady, id);
      if (found !== undefined) await this.#instances.discard(steady, found);
    });
  }

  capacity(context: Context): Promise<Capacity> {
    return patiently(context, async () => {
      const [machine, space] = await Promise.all([
        this.#client.get<{ cpu: { total: number }; memory: { total: number } }>(
          context,
          '/1.0/resources',
        ),
        this.#space(context),
      ]);
      return {
        cpu: machine.cpu.total,
        ramMb: Math.floor(machine.memory.total / 2 ** 20),
        diskGb: Math.floor(space.total / 2 ** 30),
      };
    });
  }

  freeDiskGb(context: Context): Promise<number> {
    return patiently(context, async () => {
      const { total, used } = await this.#space(context);
      return (total - used) / 2 ** 30;
    });
  }

  memoryInUse(context: Context, id: string): Promise<number> {
    return patiently(context, () => this.#instances.memoryInUse(context, id));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#client.close();
  }

  async #space(context: Context): Promise<{ total: number; used: number }> {
    const path = `/1.0/storage-pools/${this.#place.pool}/resources`;
    return (await this.#client.get<{ space: { total: number; used: number } }>(context, path))
      .space;
  }

  /**
   * Changes of one instance take turns, so that each finds what the one before it left. A caller who
   * gives up leaves at once; a step that Incus has begun is seen to its end all the same, since Incus
   * would go on with it and nobody would know.
   */
  #change(context: Context, name: string, work: (steady: Context) => Promise<void>): Promise<void> {
    const turn = this.#turns.take(name, () =>
      patiently(context, () =>
        work({ signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(changeMs)]) }),
      ),
    );
    return unlessAborted(context, turn);
  }

  /** One at a time on the whole machine: Incus gives two that it makes at once the same range of uids. */
  #make(
    context: Context,
    spec: InstanceSpec,
    sourceOf: (steady: Context) => Promise<Record<string, unknown>>,
  ): Promise<void> {
    return this.#change(context, spec.id, async (steady) => {
      const found = await this.#instances.find(steady, spec.id);
      if (found !== undefined && isWhole(found)) return;
      const source = await sourceOf(steady);
      await this.#turns.take('making', () => this.#instances.make(steady, spec, source));
    });
  }
}
