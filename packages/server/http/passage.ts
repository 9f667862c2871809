// Two sockets joined: bytes pass both ways as fast as the slower side takes them, until either ends or we
// cut it with a word.

import type { Duplex } from 'node:stream';
import { closeFrame, FrameCounter } from './frames.ts';

/** How long a caller that is cut may take to read why. */
const goodbyeMs = 10_000;

export class Passage {
  readonly #caller: Duplex;
  readonly #host: Duplex;
  readonly #frames = new FrameCounter();
  #cut: { readonly code: number; readonly reason: string } | undefined;
  #said = false;

  constructor(caller: Duplex, host: Duplex) {
    this.#caller = caller;
    this.#host = host;
    for (const side of [caller, host]) side.on('error', () => {});
    caller.once('close', () => host.destroy());
    host.once('close', () => this.#endCaller());
    caller.pipe(host);
    host.on('data', (chunk: Buffer) => this.#fromHost(chunk));
    caller.on('drain', () => host.resume());
  }

  /** What came behind the host's answer to the upgrade. */
  begin(head: Buffer): void {
    if (head.length > 0) this.#fromHost(head);
  }

  /** Nothing of the caller's is passed on from here; it is told why at the end of the frame under way. */
  close(code: number, reason: string): void {
    if (this.#cut !== undefined) return;
    this.#cut = { code, reason };
    this.#caller.unpipe(this.#host);
    this.#caller.resume();
    this.#host.resume();
    if (this.#frames.between) this.#farewell();
    this.#destroyLater();
  }

  /** What was passed on is still read, for a while: a caller that reads nothing is not waited for. */
  #endCaller(): void {
    this.#caller.end(() => this.#caller.destroy());
    this.#destroyLater();
  }

  #destroyLater(): void {
    const late = setTimeout(() => this.#caller.destroy(), goodbyeMs);
    this.#caller.once('close', () => clearTimeout(late));
  }

  #fromHost(chunk: Buffer): void {
    if (this.#said) return;
    const passed = this.#frames.follow(chunk, this.#cut !== undefined);
    if (!this.#caller.write(chunk.subarray(0, passed)) && this.#cut === undefined) {
      this.#host.pause();
    }
    if (this.#cut !== undefined && this.#frames.between) this.#farewell();
  }

  #farewell(): void {
    if (this.#cut === undefined || this.#said) return;
    this.#said = true;
    this.#caller.end(closeFrame(this.#cut.code, this.#cut.reason));
    this.#host.destroy();
  }
}
