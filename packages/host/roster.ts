// Which computers this host has, and what happened to them lately: most questions are answered from here
// without asking the engine. Rebuilt from the engine's labels when the daemon starts.

import type { HostOutcome } from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { InstanceStatus } from './engine/engine.ts';

export interface Resident {
  readonly instance: string;
  /** As of the last command or question. */
  status: InstanceStatus;
  /** When it was last started, and when somebody last used it; by the steady clock. */
  startedAt: number;
  usedAt: number;
  /** The use after which it was last told to be idle. */
  idleToldAt?: number;
  /** The last delivery of secrets that this daemon made in its present boot. */
  delivered?: number;
  /** It boots, and nobody reaches it before it has its secrets. */
  awaitsSecrets?: boolean;
  /** A command is changing how it runs: what the engine says meanwhile is half of the way. */
  changing?: boolean;
  /** How many uses are under way. */
  uses: number;
  /** The last command's operation and its outcome: asked again, it is told and not repeated. */
  last?: { readonly operation: string; readonly outcome: HostOutcome };
}

export class Roster {
  readonly #residents = new Map<string, Resident>();
  readonly #computers = new Map<string, string>();
  readonly #now: () => number;

  /** `now`: a steady clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  all(): [computer: string, resident: Resident][] {
    return [...this.#residents];
  }

  get(computer: string): Resident | undefined {
    return this.#residents.get(computer);
  }

  add(computer: string, instance: string, status: InstanceStatus): Resident {
    const now = this.#now();
    const resident = { instance, status, startedAt: now, usedAt: now, uses: 0 };
    this.#residents.set(computer, resident);
    this.#computers.set(instance, computer);
    return resident;
  }

  /** Whose instance it is; nothing for one that waits in the pool. */
  computerOf(instance: string): string | undefined {
    return this.#computers.get(instance);
  }

  remove(computer: string): void {
    const resident = this.#residents.get(computer);
    if (resident !== undefined) this.#computers.delete(resident.instance);
    this.#residents.delete(computer);
  }

  /** Notes a use until the returned function is called. */
  use(computer: string): () => void {
    const resident = this.#residents.get(computer);
    if (resident === undefined) return () => {};
    resident.uses += 1;
    resident.usedAt = this.#now();
    return () => {
      resident.uses -= 1;
      resident.usedAt = this.#now();
    };
  }

  /** As long after a start a silent agent is expected (wire-guest section 0). */
  isStarting(computer: string): boolean {
    const resident = this.#residents.get(computer);
    return resident !== undefined && this.#now() - resident.startedAt < limits.startingMs;
  }

  /** It boots, or goes on with its session. */
  began(resident: Resident, what: 'boot' | 'session'): void {
    resident.usedAt = this.#now();
    if (what === 'boot') resident.startedAt = resident.usedAt;
  }

  /** How long nobody has used it. */
  idleMs({ uses, usedAt }: Resident): number {
    return uses > 0 ? 0 : this.#now() - usedAt;
  }
}
