// The computers of this host: carries out the control plane's commands on the engine. A command may be
// repeated with its operation's id; what is already so is left so.

import type {
  HostCommand,
  HostComputer,
  HostDelivery,
  HostOutcome,
} from '@cubicle/contract/host/api.ts';
import { buildOf } from './builds/labels.ts';
import { bootWithSecrets } from './deliveries.ts';
import { type Context, EngineError, type Instance, type InstanceStatus } from './engine/engine.ts';
import { labelsOf, statuses } from './instances.ts';
import { type ComputersParts, Making } from './making.ts';
import { power, type PowerCommand } from './power.ts';
import type { Resident } from './roster.ts';
import { ImagePreparing } from './templates.ts';
import { Turns } from './turns.ts';

export class Computers {
  readonly #parts: ComputersParts;
  readonly #turns = new Turns();
  readonly #making: Making;

  constructor(parts: ComputersParts) {
    this.#parts = parts;
    this.#making = new Making(parts);
  }

  /** Finds the computers that were here before, and listens for their agents again. */
  async adopt(context: Context): Promise<void> {
    const { engine, links, folders, roster, events, pool, builds } = this.#parts;
    const instances = await engine.list(context);
    await folders.keepOnly(new Set(instances.map(({ id }) => id)));
    for (const instance of instances) {
      if (buildOf(instance) !== undefined) {
        await builds.adopt(context, instance);
        continue;
      }
      const { computer, resolution } = labelsOf(instance);
      if (computer === '') {
        await pool.adopt(context, instance);
        continue;
      }
      roster.add(computer, instance.id, instance.status);
      events.found(instance.id, statuses[instance.status]);
      const { id } = instance;
      await links.open(id, await folders.describe({ id, resolution, hostname: computer }));
    }
  }

  /** Why a guest cannot be called now; undefined when it runs, whether its agent answers or not. */
  async guestState(
    context: Context,
    computer: string,
  ): Promise<'absent' | 'not_running' | 'suspended' | 'starting' | undefined> {
    const { roster } = this.#parts;
    const resident = roster.get(computer);
    if (resident === undefined) return 'absent';
    await this.#parts.census.updateOne(context, computer);
    if (roster.get(computer) !== resident) return 'absent';
    if (resident.awaitsSecrets === true) return 'starting';
    if (resident.status === 'running') return undefined;
    return resident.status === 'frozen' ? 'suspended' : 'not_running';
  }

  async list(context: Context): Promise<HostComputer[]> {
    const { census, roster } = this.#parts;
    await census.update(context);
    return roster.all().map(([computer, resident]) => this.#tell(computer, resident));
  }

  async get(context: Context, computer: string): Promise<HostComputer | undefined> {
    const { census, roster } = this.#parts;
    await census.updateOne(context, computer);
    const resident = roster.get(computer);
    return resident && this.#tell(computer, resident);
  }

  /** Commands on one computer take turns. `delivery`: for one that boots, and no longer than that. */
  async carryOut(
    context: Context,
    computer: string,
    command: HostCommand,
    delivery?: HostDelivery,
  ): Promise<HostOutcome> {
    return this.#turns.take(computer, async () => {
      const { last } = this.#parts.roster.get(computer) ?? {};
      if (last?.operation === command.operation) return last.outcome;
      const outcome = await this.#attempt(context, computer, command, delivery);
      const resident = this.#parts.roster.get(computer);
      if (resident !== undefined && outcome.outcome !== 'copying') {
        resident.last = { operation: command.operation, outcome };
      }
      return outcome;
    });
  }

  /** Secrets for one that runs. Whether its guest has them. */
  async deliver(context: Context, computer: string, delivery: HostDelivery): Promise<boolean> {
    return this.#turns.take(computer, async () => {
      if ((await this.guestState(context, computer)) !== undefined) return false;
      const resident = this.#parts.roster.get(computer);
      if (resident === undefined) return false;
      return this.#parts.deliveries.later(context, resident, delivery);
    });
  }

  async #attempt(
    context: Context,
    computer: string,
    command: HostCommand,
    delivery: HostDelivery | undefined,
  ): Promise<HostOutcome> {
    try {
      switch (command.kind) {
        case 'create':
          return await this.#making.create(context, computer, command, delivery);
        case 'clone':
          return await this.#making.clone(context, computer, command);
        case 'delete':
          await this.#making.remove(context, computer);
          return { outcome: 'done', status: 'stopped' };
        case 'start':
        case 'restart':
          return await this.#boot(context, computer, command, delivery);
        default:
          return await this.#power(context, computer, command);
      }
    } catch (error) {
      if (error instanceof ImagePreparing) {
        return { outcome: 'refused', why: 'image_preparing', preparation: error.preparation };
      }
      if (error instanceof EngineError && (error.kind === 'room' || error.kind === 'busy')) {
        return { outcome: 'refused', why: error.kind === 'room' ? 'no_room' : 'busy' };
      }
      return { outcome: 'failed', message: this.#told(error, 'The host could not carry it out.') };
    }
  }

  /** What the engine says is for the log; a caller gets a sentence of ours. */
  #told(error: unknown, sentence: string): string {
    this.#parts.log(error);
    return sentence;
  }

  async #boot(
    context: Context,
    computer: string,
    command: Extract<PowerCommand, { kind: 'start' | 'restart' }>,
    delivery: HostDelivery | undefined,
  ): Promise<HostOutcome> {
    if (command.delivers === undefined) return this.#power(context, computer, command);
    const resident = this.#parts.roster.get(computer);
    if (resident === undefined) return { outcome: 'refused', why: 'absent' };
    const given = { computer, resident, delivery };
    return bootWithSecrets(context, this.#parts, given, () =>
      this.#power(context, computer, command),
    );
  }

  async #power(context: Context, computer: string, command: PowerCommand): Promise<HostOutcome> {
    const { engine, links, roster } = this.#parts;
    const resident = roster.get(computer);
    const instance = resident && (await engine.get(context, resident.instance));
    if (resident === undefined || instance === undefined) {
      return { outcome: 'refused', why: 'absent' };
    }
    if (command.kind === 'suspend' && command.idle_s !== undefined) {
      const idleMs = roster.idleMs(resident);
      const driven = links.busy(instance.id) || idleMs < command.idle_s * 1_000;
      if (driven) return { outcome: 'refused', why: 'busy' };
      if (instance.status === 'running') this.#tellIdle(resident, idleMs);
    }
    if (command.kind === 'suspend' && instance.status === 'running') {
      await this.#parts.frames.save(instance.id);
    }
    // Said before the guest goes down: afterwards nobody could tell it from a desktop that broke.
    if (command.kind === 'restart' && instance.status === 'running') {
      this.#parts.ended(computer, 'restarted');
    }
    resident.changing = true;
    try {
      const outcome = await power(context, engine, instance, command);
      if (outcome.outcome === 'done') this.#note(computer, resident, instance, command, outcome);
      return outcome;
    } finally {
      delete resident.changing;
    }
  }

  #note(
    computer: string,
    resident: Resident,
    instance: Instance,
    command: PowerCommand,
    outcome: Extract<HostOutcome, { outcome: 'done' }>,
  ): void {
    const { links, roster, events } = this.#parts;
    const runs = outcome.status === 'running' && instance.status !== 'frozen';
    const again = instance.status === 'running' && command.kind === 'restart';
    const boots = runs && (instance.status !== 'running' || again);
    if (boots) {
      links.stopped(instance.id);
      delete resident.delivered;
    }
    if (again) events.restarted(instance.id);
    roster.began(resident, boots ? 'boot' : 'session');
    this.#parts.census.note(resident, enginesWord[outcome.status] ?? 'stopped');
    if (outcome.status === 'suspended') this.#parts.ended(computer, 'suspended');
    else if (outcome.status === 'stopped') this.#parts.ended(computer, 'stopped');
  }

  /** Once for the time that nobody used it, though suspending it may take several tries. */
  #tellIdle(resident: Resident, idleMs: number): void {
    if (resident.idleToldAt === resident.usedAt) return;
    resident.idleToldAt = resident.usedAt;
    this.#parts.events.idle(resident.instance, Math.floor(idleMs / 1_000));
  }

  #tell(computer: string, resident: Resident): HostComputer {
    const { links, roster } = this.#parts;
    const status = statuses[resident.status];
    if (status !== 'running') return { id: computer, status, ready: false };
    const idleS = Math.floor(roster.idleMs(resident) / 1_000);
    const secrets = this.#parts.deliveries.held(resident);
    return {
      id: computer,
      status,
      ready: links.ready(resident.instance) && resident.awaitsSecrets !== true,
      ...(secrets !== undefined && { secrets }),
      ...(!links.busy(resident.instance) && { idle_s: idleS }),
    };
  }
}

const enginesWord: Partial<Record<HostComputer['status'], InstanceStatus>> = {
  running: 'running',
  suspended: 'frozen',
  stopped: 'stopped',
};
