// Events that somebody waits for one by one. None is missed between two waits, and no flood piles up.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from './connection.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';

/** Whoever waits for events reads them at once; only a flood comes to so many. */
const mostKept = 64;

export class EventQueue {
  readonly #kept: Buffer[] = [];
  readonly #stop: () => void;
  #failure: DisplayError | undefined;
  #waiting: PromiseWithResolvers<void> | undefined;

  constructor(connection: Connection, wanted: (event: Buffer) => boolean) {
    this.#stop = connection.listen(
      (event) => {
        if (!wanted(event)) return;
        if (this.#kept.length < mostKept) this.#kept.push(Buffer.from(event));
        else this.#failure = new DisplayError('refused', 'too many events');
        this.#wake();
      },
      (failure) => {
        this.#failure = failure;
        this.#wake();
      },
    );
  }

  async next(context: Context): Promise<Buffer> {
    for (;;) {
      const event = this.#kept.shift();
      if (event !== undefined) return event;
      if (this.#failure !== undefined) throw this.#failure;
      this.#waiting ??= Promise.withResolvers<void>();
      await unlessAborted(context, this.#waiting.promise);
    }
  }

  stop(): void {
    this.#stop();
  }

  #wake(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }
}
