// The builds of this host: one runs at a time, and those that succeeded are held until they are removed. The
// engine's labels say which those are; what else is known of a build goes with the daemon.

import { freemem, totalmem } from 'node:os';
import type {
  HostBuildAnswer,
  HostBuildOrder,
  HostBuildProgress,
  HostBuilds,
} from '@cubicle/contract/host/builds.ts';
import { type Context, EngineError, type Instance } from '../engine/engine.ts';
import { removeInstance } from '../instances.ts';
import { ImagePreparing, type Templates } from '../templates.ts';
import { Turns } from '../turns.ts';
import { type BuildParts, carryOut } from './build.ts';
import { buildInstance, buildOf } from './labels.ts';
import { BuildRecord } from './record.ts';
import { StepFailed } from './workshop.ts';

export interface BuildsParts extends BuildParts {
  readonly templates: Pick<Templates, 'names' | 'imageOf'>;
  readonly log: (problem: unknown) => void;
  /** A build that takes longer has hung. */
  readonly longestMs?: number | undefined;
}

interface Running {
  readonly record: BuildRecord;
  readonly ending: AbortController;
  over: Promise<void>;
}

const longestMs = 40 * 60_000;
const cleanUpMs = 120_000;
/** Of the machine's memory, what must be free for another guest to boot; as for the pool. */
const spareShare = 0.2;
/** For what the steps write, besides what is kept for the computers that are there. */
const neededDiskGb = 4;
/** Records of builds that are over. */
const mostRecords = 64;

type Refused = Extract<HostBuildAnswer, { outcome: 'refused' }>['why'];

export class Builds {
  readonly #parts: BuildsParts;
  readonly #held = new Set<string>();
  /** Of all that run or ran, oldest first. */
  readonly #records = new Map<string, BuildRecord>();
  readonly #since = new Date();
  /** Orders and removals of one build. */
  readonly #turns = new Turns();
  #running: Running | undefined;
  /** An order is being looked at. */
  #judging = false;
  #stopped = false;

  constructor(parts: BuildsParts) {
    this.#parts = parts;
  }

  /** One that an earlier daemon left: held if it was finished, removed otherwise. */
  async adopt(context: Context, instance: Instance): Promise<void> {
    const build = buildOf(instance);
    if (build?.finished !== true) return removeInstance(context, this.#parts, instance.id);
    this.#held.add(build.id);
  }

  /** Of a finished build, for computers to be made from; undefined when it is not held. */
  instanceOf(build: string): string | undefined {
    return this.#held.has(build) ? buildInstance(build) : undefined;
  }

  list(): HostBuilds {
    const running = this.#running?.record.id;
    return {
      builds: [
        ...(running === undefined ? [] : [{ id: running, state: 'running' as const }]),
        ...[...this.#held].map((id) => ({ id, state: 'held' as const })),
      ],
    };
  }

  /** With `after` it is told once it has moved beyond that. */
  async tell(
    { signal }: Context,
    id: string,
    after: number | undefined,
    waitMs: number,
  ): Promise<HostBuildProgress | undefined> {
    const record = this.#records.get(id);
    if (record === undefined) {
      return this.#held.has(id) ? BuildRecord.held(id, this.#since).tell() : undefined;
    }
    if (after !== undefined && record.status === 'running') {
      await record.moved(after, waitMs, signal);
    }
    return record.tell();
  }

  /** The same build again is accepted whatever became of it. */
  order(context: Context, id: string, order: HostBuildOrder): Promise<HostBuildAnswer> {
    return this.#turns.take(id, () => this.#judge(context, id, order));
  }

  /** Ends it where it runs, and removes what it made. One that is unknown is as good as removed. */
  remove(context: Context, id: string): Promise<void> {
    return this.#turns.take(id, async () => {
      if (this.#running?.record.id === id) {
        this.#running.ending.abort('The build was removed.');
        await this.#running.over;
      }
      const held = this.#held.delete(id);
      try {
        // Whether it is known or not: a daemon that was killed may have left it, and Incus shown it later.
        await removeInstance(context, this.#parts, buildInstance(id));
      } catch (error) {
        if (held) this.#held.add(id);
        throw error;
      }
      this.#records.delete(id);
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#running?.ending.abort('The host was stopped.');
    await this.#running?.over;
  }

  async #judge(context: Context, id: string, order: HostBuildOrder): Promise<HostBuildAnswer> {
    if (this.#held.has(id) || this.#records.has(id)) return { outcome: 'accepted' };
    if (this.#running !== undefined || this.#judging) return refused('busy');
    this.#judging = true;
    try {
      const why = await this.#reasonAgainst(context, order.parent);
      if (why !== undefined) return refused(why);
      if (this.#stopped) return refused('busy');
      this.#begin(id, order);
      return { outcome: 'accepted' };
    } finally {
      this.#judging = false;
    }
  }

  async #reasonAgainst(
    context: Context,
    { template, digest }: HostBuildOrder['parent'],
  ): Promise<Refused | undefined> {
    const { templates, engine } = this.#parts;
    try {
      if (!templates.names.includes(template)) return 'parent_changed';
      if ((await templates.imageOf(context, template)) !== digest) return 'parent_changed';
      await this.#sweep(context);
      if (engine.kind !== 'simulated' && freemem() < totalmem() * spareShare) return 'no_room';
      if ((await engine.freeDiskGb(context)) < neededDiskGb) return 'no_room';
    } catch (error) {
      if (error instanceof ImagePreparing) return 'image_preparing';
      if (error instanceof EngineError && error.kind === 'room') return 'no_room';
      throw error;
    }
    return undefined;
  }

  #begin(id: string, order: HostBuildOrder): void {
    const record = new BuildRecord(id, order.steps.length);
    record.enter('planning', 'Looking at the order.');
    this.#records.set(id, record);
    this.#forgetOldest();
    const running = { record, ending: new AbortController(), over: Promise.resolve() };
    this.#running = running;
    running.over = this.#run(running, order);
  }

  async #run({ record, ending }: Running, order: HostBuildOrder): Promise<void> {
    const instance = buildInstance(record.id);
    const late = AbortSignal.timeout(this.#parts.longestMs ?? longestMs);
    const context = { signal: AbortSignal.any([ending.signal, late]) };
    try {
      await carryOut(context, this.#parts, record, instance, order);
      this.#held.add(record.id);
      // An image has no guest to speak to. The folder stays: without it Incus refuses to change an instance.
      await this.#parts.links.close(instance);
      this.#running = undefined;
      record.succeeded('The image is ready.');
    } catch (error) {
      await this.#discard(instance);
      this.#held.delete(record.id);
      this.#running = undefined;
      const [note, told] = this.#wordsFor(error, record, { ended: ending.signal, late });
      record.failed(note, told);
    }
  }

  /** The note, and the error, which is the output where a step wrote any. */
  #wordsFor(
    error: unknown,
    record: BuildRecord,
    { ended, late }: { ended: AbortSignal; late: AbortSignal },
  ): [note: string, error: string] {
    const one = (sentence: string): [string, string] => [sentence, sentence];
    if (ended.aborted) return one(String(ended.reason));
    if (late.aborted) return one(`The build took longer than ${longestMs / 60_000} minutes.`);
    if (error instanceof StepFailed) {
      const note = `Step ${record.tell().step} failed: ${error.message}.`;
      return [note, error.output === '' ? note : error.output];
    }
    this.#parts.log(error);
    if (error instanceof EngineError && error.kind === 'room') return one('The host has no room.');
    return one('The host could not carry out the build.');
  }

  async #discard(instance: string): Promise<void> {
    try {
      const context = { signal: AbortSignal.timeout(cleanUpMs) };
      await removeInstance(context, this.#parts, instance);
    } catch (error) {
      // The next order sweeps it away, or the next daemon.
      this.#parts.log(error);
    }
  }

  /** What builds left that nobody could remove when its time came. None runs now. */
  async #sweep(context: Context): Promise<void> {
    for (const instance of await this.#parts.engine.list(context)) {
      if (buildOf(instance)?.finished === false) await this.#discard(instance.id);
    }
  }

  #forgetOldest(): void {
    for (const id of this.#records.keys()) {
      if (this.#records.size <= mostRecords) return;
      this.#records.delete(id);
    }
  }
}

const refused = (why: Refused): HostBuildAnswer => ({ outcome: 'refused', why });
