// The background commands of one computer as the host remembers them (wire-guest section 4): volatile,
// those that ended for ten minutes, nothing across a restart of the daemon.

import { counts, keepExitedMs } from '@cubicle/contract/guest/sizes.ts';
import { limits } from '@cubicle/contract/limits.ts';

export interface Execution {
  readonly executionId: string;
  readonly pid: number;
  readonly status: 'running' | 'exited' | 'lost';
  readonly startedAt: Date;
  /** Present exactly when it exited. */
  readonly endedAt?: Date;
  readonly exitCode?: number;
}

/** What polling has consumed; polls of one command take turns. */
interface Reading {
  stdout: number;
  stderr: number;
  turn: Promise<unknown>;
}

interface Kept {
  execution: Execution;
  readonly reading: Reading;
  /** When it stopped being of interest, by the steady clock. */
  overAt: number | undefined;
  /** Asked for, and the guest has not answered yet. */
  pending: boolean;
}

export interface Clock {
  /** Steady, in milliseconds. */
  readonly now: () => number;
  readonly date: () => Date;
}

export class Executions {
  readonly #clock: Clock;
  readonly #tell: (execution: Execution) => void;
  /** In the order of their start. */
  readonly #records = new Map<string, Kept>();

  constructor(clock: Clock, tell: (execution: Execution) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Takes a place before the guest is asked, so that even the end may be heard first. False: none left. */
  expect(executionId: string): boolean {
    this.#prune();
    const busy = this.#all().filter(({ overAt }) => overAt === undefined);
    if (busy.length >= limits.execBackground) return false;
    const startedAt = this.#clock.date();
    this.#records.set(executionId, {
      execution: { executionId, pid: 0, status: 'running', startedAt },
      reading: { stdout: 0, stderr: 0, turn: Promise.resolve() },
      overAt: undefined,
      pending: true,
    });
    return true;
  }

  get busy(): boolean {
    return this.#all().some(({ overAt }) => overAt === undefined);
  }

  started(executionId: string, pid: number): void {
    const record = this.#records.get(executionId);
    if (record === undefined) return;
    record.pending = false;
    record.execution = { ...record.execution, pid };
    if (record.execution.status !== 'running') this.#tell(record.execution);
  }

  /** The guest did not start it. */
  withdraw(executionId: string): void {
    this.#records.delete(executionId);
  }

  exited(executionId: string, exitCode: number): void {
    const record = this.#records.get(executionId);
    if (record?.execution.status !== 'running') return;
    this.#over(record, { status: 'exited', endedAt: this.#clock.date(), exitCode });
  }

  /** Those still running of which the guest knows nothing are lost. Answers the ids that both know. */
  reconcile(
    running: readonly string[],
    ended: readonly { id: string; exit_code: number }[],
  ): string[] {
    for (const { id, exit_code } of ended) this.exited(id, exit_code);
    this.lose(running);
    const told = [...running, ...ended.map(({ id }) => id)];
    return told.filter((id) => this.#records.get(id)?.pending === false);
  }

  /** Of those running, all but these. */
  lose(except: readonly string[] = []): void {
    for (const record of this.#all()) {
      const { executionId, status } = record.execution;
      if (status !== 'running' || record.pending || except.includes(executionId)) continue;
      this.#over(record, { status: 'lost' });
    }
  }

  byId(executionId: string): Execution | undefined {
    this.#prune();
    const record = this.#records.get(executionId);
    return record?.pending === false ? record.execution : undefined;
  }

  /** A number used again is the newest command's. */
  byPid(pid: number): Execution | undefined {
    this.#prune();
    return this.#all().findLast(({ execution, pending }) => !pending && execution.pid === pid)
      ?.execution;
  }

  /** One reader at a time, so that no byte is told twice or skipped. */
  inTurn<T>(executionId: string, read: (reading: Reading) => Promise<T>): Promise<T> | undefined {
    const reading = this.#records.get(executionId)?.reading;
    if (reading === undefined) return undefined;
    const turn = reading.turn.then(() => read(reading));
    reading.turn = turn.catch(() => {});
    return turn;
  }

  #over(record: Kept, end: Partial<Execution>): void {
    record.execution = { ...record.execution, ...end };
    record.overAt = this.#clock.now();
    if (!record.pending) this.#tell(record.execution);
  }

  #all(): Kept[] {
    return [...this.#records.values()];
  }

  #prune(): void {
    const before = this.#clock.now() - keepExitedMs;
    const over = this.#all()
      .filter(({ overAt }) => overAt !== undefined)
      .toSorted((a, b) => (a.overAt as number) - (b.overAt as number));
    over.forEach(({ overAt, execution }, i) => {
      if (i < over.length - counts.exitedKept || (overAt as number) <= before) {
        this.#records.delete(execution.executionId);
      }
    });
  }
}
