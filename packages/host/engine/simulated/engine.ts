/** An engine without machinery: instances are records, changes take as long as one says, faults are at hand. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Turns } from '../../turns.ts';
import {
  type Capacity,
  type Change,
  type Context,
  type Engine,
  EngineError,
  type ImageFiles,
  type Instance,
  type InstanceSpec,
  type InstanceStatus,
  type Shape,
} from '../engine.ts';
import { Faults } from './faults.ts';
import { Journal } from './journal.ts';

export type SimulatedCall = Exclude<keyof Engine, 'kind' | 'close'>;

export interface SimulatedOptions {
  /** Where the records are; one that is opened again knows its instances. */
  readonly folder: string;
  /** How long calls take; those without a figure take no time. */
  readonly delaysMs?: Partial<Record<SimulatedCall, number>>;
  readonly capacity?: Capacity;
}

interface Simulated {
  readonly id: string;
  readonly status: InstanceStatus;
  readonly shape: Shape;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts: InstanceSpec['mounts'];
  /** Files by path: what a copy takes over and then has for itself. */
  readonly disk: Readonly<Record<string, string>>;
  /** New at each boot; what lives in memory lives as long as it stays. */
  readonly session: string;
}

const roomy: Capacity = { cpu: 1_000, ramMb: 4_000_000, diskGb: 100_000 };

export class SimulatedEngine implements Engine {
  readonly kind = 'simulated';
  readonly faults = new Faults<SimulatedCall>();
  readonly #options: SimulatedOptions;
  readonly #instances: Journal<Simulated>;
  readonly #images: Journal<ImageFiles>;
  readonly #turns = new Turns();

  constructor(options: SimulatedOptions) {
    this.#options = options;
    this.#instances = new Journal(join(options.folder, 'instances.jsonl'));
    this.#images = new Journal(join(options.folder, 'images.jsonl'));
  }

  images(context: Context): Promise<string[]> {
    return this.#look(context, 'images', () => this.#images.keys());
  }

  importImage(context: Context, digest: string, files: ImageFiles): Promise<void> {
    return this.#change(context, 'importImage', digest, () => this.#images.put(digest, files));
  }

  removeImage(context: Context, digest: string): Promise<void> {
    return this.#change(context, 'removeImage', digest, () => this.#images.remove(digest));
  }

  list(context: Context): Promise<Instance[]> {
    return this.#look(context, 'list', () => this.#instances.values().map(toInstance));
  }

  get(context: Context, id: string): Promise<Instance | undefined> {
    return this.#look(context, 'get', () => {
      const found = this.#instances.get(id);
      return found && toInstance(found);
    });
  }

  create(context: Context, spec: InstanceSpec, digest: string): Promise<void> {
    return this.#make(context, 'create', spec, () => {
      if (this.#images.get(digest) === undefined) throw absent(`image ${digest}`);
      return {};
    });
  }

  copy(context: Context, spec: InstanceSpec, source: string): Promise<void> {
    return this.#make(context, 'copy', spec, () => {
      const { status, disk } = this.#existing(source);
      if (status !== 'stopped' && status !== 'frozen') {
        throw new EngineError('failed', `${source} is ${status} and cannot be copied`);
      }
      return disk;
    });
  }

  start(context: Context, id: string): Promise<void> {
    return this.#turn(context, 'start', id, ({ status }) => ({
      status: 'running',
      ...(status === 'stopped' ? { session: randomUUID() } : {}),
    }));
  }

  stop(context: Context, id: string, _force: boolean): Promise<void> {
    return this.#turn(context, 'stop', id, () => ({ status: 'stopped' }));
  }

  restart(context: Context, id: string): Promise<void> {
    return this.#turn(context, 'restart', id, () => ({ status: 'running', session: randomUUID() }));
  }

  freeze(context: Context, id: string): Promise<void> {
    return this.#turn(context, 'freeze', id, ({ status }) => {
      if (status === 'stopped')
        throw new EngineError('failed', `${id} is stopped and cannot freeze`);
      return { status: 'frozen' };
    });
  }

  thaw(context: Context, id: string): Promise<void> {
    return this.#turn(context, 'thaw', id, ({ status }) => {
      if (status === 'stopped') throw new EngineError('failed', `${id} is stopped and cannot thaw`);
      return { status: 'running' };
    });
  }

  /** There is no guest to take them, and nothing of them is kept. */
  deliver(context: Context, _id: string, _serial: number): Promise<void> {
    return this.#look(context, 'deliver', () => {});
  }

  change(context: Context, id: string, { shape, labels }: Change): Promise<void> {
    return this.#change(context, 'change', id, () => {
      const found = this.#existing(id);
      if (shape !== undefined) {
        if (found.status === 'broken') throw new EngineError('failed', `${id} is broken`);
        const { diskGb } = found.shape;
        if (shape.diskGb < diskGb) {
          throw new EngineError('failed', `the disk of ${id} cannot shrink from ${diskGb} GB`);
        }
      }
      this.#instances.put(id, {
        ...found,
        shape: shape ?? found.shape,
        labels: { ...found.labels, ...labels },
      });
    });
  }

  delete(context: Context, id: string): Promise<void> {
    return this.#change(
      context,
      'delete',
      id,
      () => this.#instances.remove(id),
      () => {
        const found = this.#instances.get(id);
        if (found !== undefined) this.#instances.put(id, { ...found, status: 'broken' });
      },
    );
  }

  capacity(context: Context): Promise<Capacity> {
    return this.#look(context, 'capacity', () => this.#options.capacity ?? roomy);
  }

  /** Nothing is written at all. */
  freeDiskGb(context: Context): Promise<number> {
    return this.#look(context, 'freeDiskGb', () => (this.#options.capacity ?? roomy).diskGb);
  }

  /** A fifth of what it may have, as an idle desktop does. */
  memoryInUse(context: Context, id: string): Promise<number> {
    return this.#look(context, 'memoryInUse', () => {
      const { status, shape } = this.#existing(id);
      return status === 'stopped' ? 0 : Math.round(shape.ramMb * 2 ** 20 * 0.2);
    });
  }

  async close(): Promise<void> {}

  /** As if a guest had written it. */
  writeFile(id: string, path: string, text: string): void {
    const found = this.#existing(id);
    this.#instances.put(id, { ...found, disk: { ...found.disk, [path]: text } });
  }

  readFile(id: string, path: string): string | undefined {
    return this.#existing(id).disk[path];
  }

  /** Stays the same until the guest boots again. */
  session(id: string): string {
    return this.#existing(id).session;
  }

  #existing(id: string): Simulated {
    const found = this.#instances.get(id);
    if (found === undefined) throw absent(`instance ${id}`);
    return found;
  }

  async #look<Result>(
    context: Context,
    call: SimulatedCall,
    answer: () => Result,
  ): Promise<Result> {
    await this.#delay(context, call);
    return await this.faults.meet(context, call, answer);
  }

  #change(
    context: Context,
    call: SimulatedCall,
    name: string,
    effect: () => void,
    half?: () => void,
  ): Promise<void> {
    return this.#turns.take(name, async () => {
      await this.#delay(context, call);
      await this.faults.meet(context, call, effect, half);
    });
  }

  /** From one state of a sound instance to another. */
  #turn(
    context: Context,
    call: SimulatedCall,
    id: string,
    next: (found: Simulated) => Partial<Simulated>,
  ): Promise<void> {
    return this.#change(context, call, id, () => {
      const found = this.#existing(id);
      if (found.status === 'broken') throw new EngineError('failed', `${id} is broken`);
      this.#instances.put(id, { ...found, ...next(found) });
    });
  }

  #make(
    context: Context,
    call: 'create' | 'copy',
    spec: InstanceSpec,
    diskOf: () => Simulated['disk'],
  ): Promise<void> {
    const put = (status: InstanceStatus, disk: Simulated['disk']) =>
      this.#instances.put(spec.id, { ...spec, status, disk, session: '' });
    return this.#change(
      context,
      call,
      spec.id,
      () => {
        const found = this.#instances.get(spec.id);
        if (found === undefined || found.status === 'broken') put('stopped', diskOf());
      },
      () => put('broken', {}),
    );
  }

  async #delay(context: Context, call: SimulatedCall): Promise<void> {
    context.signal.throwIfAborted();
    const delayMs = this.#options.delaysMs?.[call] ?? 0;
    if (delayMs === 0) return;
    await pause(delayMs, undefined, { signal: context.signal }).catch(() => {});
    context.signal.throwIfAborted();
  }
}

function toInstance({ id, status, shape, labels }: Simulated): Instance {
  return { id, status, shape, labels };
}

const absent = (what: string): EngineError => new EngineError('absent', `no ${what}`);
