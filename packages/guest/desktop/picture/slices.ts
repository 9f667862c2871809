// Long work in slices, so that the agent goes on answering meanwhile. In the agent's own thread: a worker
// would cost every guest a second heap and a start of its own for work of some ten milliseconds.

import { setImmediate } from 'node:timers/promises';
import type { Context } from '@cubicle/contract/guest/mux.ts';

const sliceMs = 4;

export class Slices {
  readonly #context: Context;
  #began = performance.now();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Called between steps of less than a millisecond. Lets others work when it is their turn. */
  async step(): Promise<void> {
    if (performance.now() - this.#began < sliceMs) return;
    await setImmediate();
    this.#context.signal.throwIfAborted();
    this.#began = performance.now();
  }
}
