// One open event stream: where it stands in the history, and whether its reader keeps up. A reader that is
// full is passed nothing; when it drains it reads on from the history, and when the history no longer has
// its place it is put down.

import { closedFrame } from './frames.ts';
import type { History } from './history.ts';
import type { Entry } from './ring.ts';

/** What a socket gives. */
export interface StreamSocket {
  /** Always takes the frame. False: it has enough, until `drained` is called. */
  send(frame: string): boolean;
  /** After the last frame: the socket is to be closed. */
  close(detail: string): void;
}

/** A reader that takes nothing for so long has stopped reading. */
const stalledMs = 60_000;
const tooSlow = 'This stream was not read fast enough. Reconnect with the last cursor.';

export class Subscriber {
  readonly #socket: StreamSocket;
  readonly #history: History;
  readonly #over: () => void;
  /** Undefined until it begins, and after its end. */
  #position: number | undefined;
  #full = false;
  #missedNotice: string | undefined;
  #stalled: NodeJS.Timeout | undefined;

  constructor(socket: StreamSocket, history: History, over: () => void) {
    this.#socket = socket;
    this.#history = history;
    this.#over = over;
  }

  /** The first frames, then everything from the position on. */
  begin(frames: readonly string[], position: number): void {
    this.#position = position;
    for (const frame of frames) this.#send(frame);
    if (!this.#full) this.#readOn();
  }

  /** The newest entry. */
  offer({ seq, text }: Entry): void {
    if (this.#position === undefined) return;
    if (!this.#full) {
      this.#position = seq + 1;
      this.#send(text);
    } else if (this.#position < this.#history.oldest) {
      this.putDown(tooSlow);
    }
  }

  /** A frame that the history does not hold; of several the last counts. */
  notice(frame: string): void {
    if (this.#position === undefined) return;
    if (this.#full) this.#missedNotice = frame;
    else this.#send(frame);
  }

  drained(): void {
    if (this.#position === undefined || !this.#full) return;
    this.#full = false;
    clearTimeout(this.#stalled);
    const notice = this.#missedNotice;
    this.#missedNotice = undefined;
    if (notice !== undefined) this.#send(notice);
    if (!this.#full) this.#readOn();
  }

  putDown(detail: string): void {
    if (this.#position !== undefined) this.#socket.send(closedFrame(detail));
    this.end();
    this.#socket.close(detail);
  }

  /** The socket is gone. */
  end(): void {
    clearTimeout(this.#stalled);
    this.#position = undefined;
    this.#over();
  }

  #readOn(): void {
    for (const { seq, text } of this.#history.from(this.#position as number)) {
      this.#position = seq + 1;
      this.#send(text);
      if (this.#full) return;
    }
  }

  #send(frame: string): void {
    const takesMore = this.#socket.send(frame);
    if (takesMore || this.#full) return;
    this.#full = true;
    this.#stalled = setTimeout(() => this.putDown(tooSlow), stalledMs).unref();
  }
}
