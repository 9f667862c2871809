// The background commands that the host may ask after: those that run, and for a while those that ended.

import { counts, keepExitedMs } from '@cubicle/contract/guest/sizes.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { CommandGroup } from './cgroups.ts';
import type { Command } from './command.ts';
import { Refused } from './refused.ts';

export interface Execution {
  readonly id: string;
  readonly command: Command;
  readonly group: CommandGroup | undefined;
  killed: boolean;
  endedAt: number | undefined;
}

export class Executions {
  readonly #now: () => number;
  /** In the order of their start. */
  readonly #all = new Map<string, Execution>();
  /** Admitted and not yet started. */
  #starting = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts a command in before it is started, so that many at once stay within the limit. */
  async admit(start: () => Promise<Execution>): Promise<Execution> {
    if (this.running().length + this.#starting >= limits.execBackground) {
      throw new Refused('too_many');
    }
    this.#starting += 1;
    try {
      const execution = await start();
      this.#all.set(execution.id, execution);
      return execution;
    } finally {
      this.#starting -= 1;
    }
  }

  ended(execution: Execution): void {
    execution.endedAt = this.#now();
    this.sweep();
  }

  get(id: string): Execution {
    const execution = this.#all.get(id);
    if (execution === undefined) throw new Refused('unknown');
    return execution;
  }

  running(): string[] {
    return [...this.#all.values()]
      .filter(({ endedAt }) => endedAt === undefined)
      .map(({ id }) => id);
  }

  exited(): { id: string; exit_code: number }[] {
    return this.#oldestEnded().map(({ id, command }) => ({
      id,
      exit_code: command.exitCode ?? -1,
    }));
  }

  /** Forgets those that ended long ago, and the oldest of too many. */
  sweep(): void {
    const ended = this.#oldestEnded();
    const tooMany = ended.length - counts.exitedKept;
    const before = this.#now() - keepExitedMs;
    ended.forEach((execution, i) => {
      if (i < tooMany || (execution.endedAt as number) <= before) this.#forget(execution);
    });
  }

  /** Frees the output of the one that ended first; false when none has any. */
  makeRoom(): boolean {
    const oldest = this.#oldestEnded()[0];
    if (oldest !== undefined) this.#forget(oldest);
    return oldest !== undefined;
  }

  /** What the host does not know nobody will ask for. It runs on. */
  keepOnly(known: readonly string[]): void {
    for (const execution of this.#all.values()) {
      if (!known.includes(execution.id)) this.#forget(execution);
    }
  }

  #forget(execution: Execution): void {
    this.#all.delete(execution.id);
    execution.command.letGo();
  }

  #oldestEnded(): Execution[] {
    return [...this.#all.values()]
      .filter(({ endedAt }) => endedAt !== undefined)
      .toSorted((a, b) => (a.endedAt as number) - (b.endedAt as number));
  }
}
