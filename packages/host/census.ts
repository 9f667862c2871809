// What the engine would say of every computer, mostly known without asking it: a computer whose agent is
// connected runs, and what does not run starts by our commands alone. For what an operator does behind our
// back, everything is looked at again now and then.

import type { Context, Engine, InstanceStatus } from './engine/engine.ts';
import type { Events } from './events/events.ts';
import type { GuestLinks } from './guest/links.ts';
import { statuses } from './instances.ts';
import type { Resident, Roster } from './roster.ts';

const lookMs = 15_000;
/** So many single questions cost as much as one about everything. */
const mostSingle = 16;

export class Census {
  readonly #engine: Engine;
  readonly #links: GuestLinks;
  readonly #roster: Roster;
  readonly #events: Events;
  #lookAgainAt = 0;

  constructor(engine: Engine, links: GuestLinks, roster: Roster, events: Events) {
    this.#engine = engine;
    this.#links = links;
    this.#roster = roster;
    this.#events = events;
  }

  /** Afterwards the roster tells what is so. */
  async update(context: Context): Promise<void> {
    const unsure = this.#roster.all().filter(([, resident]) => this.#isUnsure(resident));
    if (unsure.length > mostSingle || performance.now() > this.#lookAgainAt) {
      await this.#lookAtAll(context);
    } else {
      await Promise.all(unsure.map(([computer]) => this.updateOne(context, computer)));
    }
  }

  async updateOne(context: Context, computer: string): Promise<void> {
    const resident = this.#roster.get(computer);
    if (resident === undefined || !this.#isUnsure(resident)) return;
    const { status } = resident;
    const instance = await this.#engine.get(context, resident.instance);
    // As below: a command that came meanwhile knows better than the answer.
    if (resident.status === status && resident.changing !== true) {
      await this.#found(computer, resident, instance?.status);
    }
  }

  note(resident: Resident, status: InstanceStatus): void {
    resident.status = status;
    if (status !== 'running' && status !== 'frozen') this.#links.stopped(resident.instance);
    this.#events.became(resident.instance, statuses[status]);
  }

  #isUnsure({ status, instance, changing }: Resident): boolean {
    if (changing === true) return false;
    return status === 'broken' || (status === 'running' && !this.#links.connected(instance));
  }

  async #lookAtAll(context: Context): Promise<void> {
    // Read before the engine is asked: what is made or changed meanwhile is not judged by an old answer.
    const before = this.#roster.all().map(([computer, resident]) => ({
      computer,
      resident,
      status: resident.status,
    }));
    const instances = await this.#engine.list(context);
    const seen = new Map(instances.map(({ id, status }) => [id, status]));
    for (const { computer, resident, status } of before) {
      if (resident.status !== status || resident.changing === true) continue;
      await this.#found(computer, resident, seen.get(resident.instance));
    }
    this.#lookAgainAt = performance.now() + lookMs;
  }

  async #found(
    computer: string,
    resident: Resident,
    status: InstanceStatus | undefined,
  ): Promise<void> {
    // What is being made may not be there yet.
    if (resident.status === 'unfinished') return;
    if (status !== undefined) return this.note(resident, status);
    if (this.#roster.get(computer) !== resident) return;
    this.#roster.remove(computer);
    await this.#links.close(resident.instance);
  }
}
