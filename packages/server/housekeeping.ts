// Work that recurs: one owner for its timers, so that stopping leaves none behind.

import type { Log } from './log.ts';

export class Housekeeping {
  readonly #log: Log;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Runs `work` every `ms`, never twice at once; a failure is logged and tried again next time. */
  every(ms: number, name: string, work: () => Promise<void>): void {
    let busy = false;
    const timer = setInterval(() => {
      if (busy) return;
      busy = true;
      const done = work()
        .catch((error: unknown) => this.#log.warn({ err: error }, `${name} failed`))
        .finally(() => {
          busy = false;
          this.#underWay.delete(done);
        });
      this.#underWay.add(done);
    }, ms);
    timer.unref();
    this.#timers.push(timer);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#underWay);
  }
}
