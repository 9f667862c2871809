// How computers come to be and how they go: from an image, from what a build left, from the pool, or as copies.
// Each making may be repeated with its operation's id and meets what was made before.

import type { HostCommand, HostDelivery, HostOutcome } from '@cubicle/contract/host/api.ts';
import type { Builds } from './builds/builds.ts';
import type { Census } from './census.ts';
import { bootWithSecrets, type Deliveries } from './deliveries.ts';
import { type Context, type Engine, EngineError, type InstanceSpec } from './engine/engine.ts';
import type { Events } from './events/events.ts';
import type { Frames } from './frames.ts';
import type { GuestLinks } from './guest/links.ts';
import { instanceIdFor, labelsOf, removeInstance, shapeOf, specOf } from './instances.ts';
import type { LinkFolders } from './link-folder.ts';
import type { Pool } from './pool.ts';
import type { Resident, Roster } from './roster.ts';
import type { SocketEnd } from './sockets/kind.ts';
import type { Templates } from './templates.ts';

export interface ComputersParts {
  readonly engine: Engine;
  readonly links: GuestLinks;
  readonly folders: LinkFolders;
  readonly roster: Roster;
  readonly census: Census;
  readonly deliveries: Deliveries;
  readonly frames: Frames;
  readonly events: Events;
  readonly pool: Pool;
  /** Node and the agent, mounted read-only into every guest. */
  readonly agentDir: string;
  /** What was about its running is over. */
  readonly ended: (computer: string, end: SocketEnd) => void;
  readonly log: (problem: unknown) => void;
  readonly templates: Templates;
  readonly builds: Builds;
}

type CreateCommand = Extract<HostCommand, { kind: 'create' }>;
type CloneCommand = Extract<HostCommand, { kind: 'clone' }>;

/** What a computer is made from: an image of the engine's, or the stopped instance that a build left. */
interface Source {
  /** Its digest, or the build's id. */
  readonly image: string;
  readonly instance?: string;
  /** The build is not held here. */
  readonly absent?: boolean;
}

/** A copy on a pool without copy-on-write may take long. */
const copyMs = 1_800_000;
/** Kept for the computers that are there. */
const sparedDiskGb = 2;
const roomMs = 5_000;
/** How long a guest that was just reached may take to answer to its name. */
const namingMs = 20_000;
/** Taking back what a failed create left. */
const cleanUpMs = 60_000;

export class Making {
  readonly #parts: ComputersParts;
  /** Copies under way, by their operation. How they ended is with the resident. */
  readonly #copies = new Set<string>();
  #room = { freeGb: 0, until: 0 };

  constructor(parts: ComputersParts) {
    this.#parts = parts;
  }

  async create(
    context: Context,
    computer: string,
    command: CreateCommand,
    delivery: HostDelivery | undefined,
  ): Promise<HostOutcome> {
    const { roster, census, pool } = this.#parts;
    pool.fillSoon();
    await this.#requireRoom(context);
    const source = await this.#sourceOf(context, command);
    const isNew = roster.get(computer) === undefined;
    if (isNew && source.absent) return { outcome: 'refused', why: 'no_image' };
    const taken = isNew && command.start ? pool.take(source.image, command.resolution) : undefined;
    const resident = this.#reserve(computer, taken ?? instanceIdFor(command.operation));
    try {
      if (taken === undefined) await this.#make(context, computer, command, resident, source);
      else await this.#moveIn(context, computer, command, taken);
    } catch (error) {
      // Nothing was made, then nothing stays. What cannot be removed now is told to be removed later.
      const later = { signal: AbortSignal.timeout(cleanUpMs) };
      await this.remove(later, computer).catch(() => {});
      throw error;
    }
    if (taken === undefined) resident.status = 'stopped';
    if (!command.start) {
      census.note(resident, 'stopped');
      return { outcome: 'done', status: 'stopped' };
    }
    const begin = () => this.#begin(context, computer, resident, taken, isNew);
    if (command.delivers === undefined) return begin();
    return bootWithSecrets(context, this.#parts, { computer, resident, delivery }, begin);
  }

  /** Copies in the background; asking again with the same operation tells how it is. */
  async clone(context: Context, computer: string, command: CloneCommand): Promise<HostOutcome> {
    const { engine, roster } = this.#parts;
    const { operation } = command;
    if (this.#copies.has(operation)) return { outcome: 'copying' };
    const source = roster.get(command.source);
    const instance = source && (await engine.get(context, source.instance));
    if (instance === undefined) return { outcome: 'refused', why: 'absent' };
    if (instance.status === 'running') return { outcome: 'refused', why: 'running' };
    await this.#requireRoom(context);
    const copy = this.#reserve(computer, instanceIdFor(operation));
    const { image } = labelsOf(instance);
    const spec = await this.#prepare(computer, copy.instance, command, image);
    // The copy outlives the request that asked for it.
    const whole = { signal: AbortSignal.timeout(copyMs) };
    this.#copies.add(operation);
    void engine.copy(whole, spec, instance.id).then(
      () => this.#copied(copy, operation, { outcome: 'done', status: 'stopped' }),
      (error: unknown) =>
        this.#copied(copy, operation, {
          outcome: 'failed',
          message: this.#told(error, 'Its disk could not be copied.'),
        }),
    );
    return { outcome: 'copying' };
  }

  async remove(context: Context, computer: string): Promise<void> {
    const { roster } = this.#parts;
    const resident = roster.get(computer);
    if (resident === undefined) return;
    // As with a restart: what breaks afterwards could not say why.
    this.#parts.ended(computer, 'removed');
    await removeInstance(context, this.#parts, resident.instance);
    await this.#parts.frames.remove(resident.instance);
    roster.remove(computer);
  }

  /** In the records of this host, to be made; or as an earlier try left it. */
  #reserve(computer: string, instance: string): Resident {
    const { roster, events } = this.#parts;
    const known = roster.get(computer);
    if (known !== undefined) return known;
    events.building(instance);
    return roster.add(computer, instance, 'unfinished');
  }

  /** The first boot of one that was made; one of the pool's runs already. */
  async #begin(
    context: Context,
    computer: string,
    resident: Resident,
    taken: string | undefined,
    isNew: boolean,
  ): Promise<HostOutcome> {
    const { engine, roster, census } = this.#parts;
    try {
      if (taken === undefined) await engine.start(context, resident.instance);
    } catch (error) {
      census.note(resident, 'stopped');
      return {
        outcome: 'start_failed',
        message: this.#told(error, 'The computer was made, but it would not start.'),
      };
    }
    // One of the pool's may have lost its daemon after it was moved into and before it was named.
    if (!isNew) await this.#name(context, computer, resident.instance);
    census.note(resident, 'running');
    roster.began(resident, 'boot');
    return { outcome: 'done', status: 'running' };
  }

  /** More disk is promised than is there, so what is really left is looked at, now and then. */
  async #requireRoom(context: Context): Promise<void> {
    if (performance.now() > this.#room.until) {
      const freeGb = await this.#parts.engine.freeDiskGb(context);
      this.#room = { freeGb, until: performance.now() + roomMs };
    }
    if (this.#room.freeGb < sparedDiskGb) throw new EngineError('room', 'the disk is nearly full');
  }

  async #sourceOf(context: Context, { template, build }: CreateCommand): Promise<Source> {
    const { templates, builds } = this.#parts;
    if (build === undefined) return { image: await templates.imageOf(context, template) };
    const instance = builds.instanceOf(build);
    return { image: build, instance: instance ?? '', absent: instance === undefined };
  }

  async #make(
    context: Context,
    computer: string,
    command: CreateCommand,
    { instance }: Resident,
    source: Source,
  ): Promise<void> {
    const { engine } = this.#parts;
    const spec = await this.#prepare(computer, instance, command, source.image);
    if (source.instance === undefined) await engine.create(context, spec, source.image);
    else await engine.copy(context, spec, source.instance);
  }

  /** Into one of the pool's, which runs: it gets its size and its name. */
  async #moveIn(
    context: Context,
    computer: string,
    { operation, shape, resolution }: CreateCommand,
    instance: string,
  ): Promise<void> {
    const { engine, folders } = this.#parts;
    const labels = { computer, operation };
    await engine.change(context, instance, { shape: shapeOf(shape), labels });
    await folders.describe({ id: instance, resolution, hostname: computer });
    await this.#name(context, computer, instance);
  }

  /** One that cannot be named now takes its name from the description at its next boot. */
  async #name({ signal }: Context, computer: string, instance: string): Promise<void> {
    const { links } = this.#parts;
    const context = { signal: AbortSignal.any([signal, AbortSignal.timeout(namingMs)]) };
    const command = `hostname ${computer}; echo ${computer} >/etc/hostname`;
    try {
      await links.whenConnected(context, instance);
      const named = await links.exec(context, instance, { command }, namingMs);
      if (!named.ok) return;
      for (const stream of [named.stdout, named.stderr]) await Array.fromAsync(stream);
    } catch (error) {
      if (!context.signal.aborted) throw error;
    }
  }

  #copied(copy: Resident, operation: string, outcome: HostOutcome): void {
    copy.last = { operation, outcome };
    if (outcome.outcome === 'done') this.#parts.census.note(copy, 'stopped');
    this.#copies.delete(operation);
  }

  async #prepare(
    computer: string,
    id: string,
    { operation, shape, resolution }: CreateCommand | CloneCommand,
    image: string,
  ): Promise<InstanceSpec> {
    const { links, folders, agentDir } = this.#parts;
    const linkDir = await folders.describe({ id, resolution, hostname: computer });
    await links.open(id, linkDir);
    const labels = { computer, operation, resolution, image };
    return specOf({ id, shape: shapeOf(shape), labels, linkDir, agentDir });
  }

  #told(error: unknown, sentence: string): string {
    this.#parts.log(error);
    return sentence;
  }
}
