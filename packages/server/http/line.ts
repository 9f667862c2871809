// A connection as a queue: its requests are obeyed one after the other, and what breaks it waits for the
// answers that are still owed. So an answer is never taken for another's, and nothing is done that nobody
// could hear of. RFC 9112 (9.3.2) lets a server work ahead on safe methods only; we never do.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Told to a request whose body can no longer arrive. */
export const cutOff = 'cut off';

export class Line {
  /** True once an answer has said that it is the last. */
  ending = false;
  /** True when no further byte can be read as part of a request. */
  broken = false;
  #owed = 0;
  #tail: Promise<void> | undefined;
  #latest: IncomingMessage | undefined;
  #goodbye: (() => void) | undefined;

  /** True while no answer is owed. */
  get idle(): boolean {
    return this.#owed === 0 && !this.broken;
  }

  /** Waits for the answers before this one, where there are any. */
  join(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
    const before = this.#tail;
    this.#owed += 1;
    this.#latest = request;
    this.#tail = new Promise((resolve) => {
      response.once('close', () => {
        this.#owed -= 1;
        if (this.#owed === 0) this.#tail = undefined;
        resolve();
        this.#settle();
      });
    });
    return before;
  }

  /** `goodbye` says why and ends it, unless the answer that is owed last does so. */
  breakOff(goodbye: () => void): void {
    if (this.broken) return;
    this.broken = true;
    this.#goodbye = goodbye;
    // Where the broken bytes are a body, its own answer will tell, and be the last.
    if (this.#latest?.complete === false) this.#latest.emit(cutOff);
    this.#settle();
  }

  #settle(): void {
    if (this.#owed > 0 || this.ending) return;
    this.#goodbye?.();
    this.#goodbye = undefined;
  }
}

const lines = new WeakMap<Socket, Line>();

export function lineOf(socket: Socket): Line {
  let line = lines.get(socket);
  if (line === undefined) lines.set(socket, (line = new Line()));
  return line;
}
