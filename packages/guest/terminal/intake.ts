// What a holder sends, piece by piece, read into the same memory again and again: output of any length
// leaves nothing behind for the collector, which would let tens of megabytes gather first.

import type { OnReadOpts, Socket } from 'node:net';
import { sizes } from '@cubicle/contract/guest/sizes.ts';

const piece = 64 * 1024;
/** Less than this is copied, so that a terminal at rest touches little of its memory. */
const little = 4 * 1024;
/**
 * What was sent and may not have left yet is at most a window of the channel. Before it, the end of the
 * memory may lie unused; after it, the next piece is read.
 */
const room = sizes.window + 2 * piece;

export class Intake {
  readonly #memory = Buffer.allocUnsafeSlow(room);
  #at = 0;
  #piece: Buffer | undefined;
  #closed = false;
  #news: PromiseWithResolvers<void> | undefined;
  #socket: Socket | undefined;

  readonly onread: OnReadOpts = {
    buffer: () => this.#memory.subarray(this.#at, this.#at + piece),
    callback: (length) => {
      const bytes = this.#memory.subarray(this.#at, this.#at + length);
      this.#piece = length < little ? Buffer.from(bytes) : bytes;
      if (length >= little) this.#at += length;
      if (this.#at + piece > room) this.#at = 0;
      this.#wake();
      // Nothing more until it is asked for.
      return false;
    },
  };

  /** From here on pieces come. */
  join(socket: Socket): void {
    this.#socket = socket;
    const closed = () => {
      this.#closed = true;
      this.#wake();
    };
    socket.once('end', closed);
    socket.once('close', closed);
  }

  /** The next piece, when all of the one before was sent; nothing when there will be none. */
  async next(): Promise<Buffer | undefined> {
    while (this.#piece === undefined) {
      if (this.#closed) return undefined;
      this.#news = Promise.withResolvers();
      this.#socket?.resume();
      await this.#news.promise;
    }
    const next = this.#piece;
    this.#piece = undefined;
    return next;
  }

  #wake(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }
}
