// Input on its way to a guest. It is kept in blocks of its own: a million frames of one byte each would
// otherwise be a million objects.

import { sizes } from '@cubicle/contract/guest/sizes.ts';

export class InputQueue {
  #blocks: Buffer[] = [];
  /** How much of the last block is used. */
  #filled = 0;

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      let last = this.#blocks.at(-1);
      if (last === undefined || this.#filled === last.length) {
        const rest = bytes.length - at;
        // A key pressed needs few bytes; what comes in bulk fills frames.
        const room = Math.min(sizes.payload, Math.max(256, rest, 2 * (last?.length ?? 0)));
        last = Buffer.allocUnsafeSlow(room);
        this.#blocks.push(last);
        this.#filled = 0;
      }
      const part = bytes.subarray(at, at + last.length - this.#filled);
      last.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
    }
  }

  /** A frame's worth; nothing when it is empty. */
  shift(): Buffer | undefined {
    const first = this.#blocks.shift();
    return this.#blocks.length === 0 ? first?.subarray(0, this.#filled) : first;
  }

  clear(): void {
    this.#blocks = [];
  }
}
