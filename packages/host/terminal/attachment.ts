// One attachment to a session, between a socket and the guest. It speaks the frames of the terminal socket
// (Part 4) and holds back either side while the other is slow.

import { type Channel, ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import {
  decodeMessage,
  encodeMessage,
  type TerminalAnswer,
  type TerminalNews,
  terminalNews,
  type TerminalResize,
} from '@cubicle/contract/guest/messages.ts';
import { limits, sizeInWords } from '@cubicle/contract/limits.ts';
import {
  boundedSize,
  readResize,
  type TerminalFrame,
  type TerminalSize,
} from '@cubicle/contract/terminal.ts';
import type { Answered } from '../guest/guest.ts';
import { InputQueue } from './input-queue.ts';

/** The socket that an attachment is joined to. */
export interface Ends {
  /** A binary frame, at most 64 KiB. False: no more until `drained`. */
  output(bytes: Buffer): boolean;
  /** A text frame, as JSON. */
  control(frame: TerminalFrame): void;
  /** The closing handshake; nothing is said after it. `leave` is called when the socket is gone. */
  close(code: number, reason: string): void;
  /** Without a handshake: the socket was closed long ago, and its place is needed. */
  cut(): void;
}

interface Verdict {
  readonly frame?: TerminalFrame;
  readonly code: number;
  readonly reason: string;
  /** False: there is nobody to be told. */
  readonly tell?: false;
  /** The guest still gets the input that was accepted. */
  readonly flush?: true;
}

const over = new Error('the attachment is over');

/** Close codes. The specification names 1000 for `detached` alone. */
const codes = { done: 1000, refused: 1008, broken: 1011, away: 1012, full: 1013 } as const;

export class Attachment {
  readonly session: string;
  readonly #channel: Channel;
  readonly #fault: (message: string) => never;
  readonly #left: (attachment: Attachment) => void;
  readonly #queue = new InputQueue();
  /** Input of the session that has not reached its pty, as far as the guest has told. */
  #pending: number;
  #size: TerminalSize | undefined;
  #ends: Ends | undefined;
  #verdict: Verdict | undefined;
  /** Its socket is gone; and its channel is. */
  #leaving = false;
  #gone = false;
  #news: PromiseWithResolvers<void> | undefined;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(
    session: string,
    { channel, answer, fault }: Answered<TerminalAnswer>,
    left: (attachment: Attachment) => void,
  ) {
    this.session = session;
    this.#channel = channel;
    this.#fault = fault;
    this.#left = left;
    this.#pending = answer.pending;
    if (answer.lost_race) {
      const message = `Another terminal took the last of the computer’s ${limits.terminalSessions} sessions.`;
      this.#finish({ frame: { type: 'error', message }, code: codes.full, reason: 'no session' });
    }
  }

  /** It has ended, and waits for its socket to be gone. */
  get over(): boolean {
    return this.#verdict !== undefined;
  }

  /** From here on the ends are used. What the guest sends before waits in the guest. */
  join(ends: Ends): void {
    this.#ends = ends;
    if (this.#verdict !== undefined) return this.#tell(ends, this.#verdict);
    void this.#passInput();
    void this.#passOutput(ends);
  }

  /** A binary frame from the client. */
  input(bytes: Uint8Array): void {
    if (this.over) return;
    if (this.#pending + bytes.length > limits.terminalInput) {
      const most = sizeInWords(limits.terminalInput);
      const message = `More than ${most} of input wait for the shell. It lives on, and may still get what was sent before; do not send it again.`;
      this.#finish({
        frame: { type: 'error', reason: 'input_overflow', message },
        code: codes.refused,
        reason: 'input overflow',
        flush: true,
      });
      return;
    }
    this.#pending += bytes.length;
    this.#queue.push(bytes);
    this.#wake();
  }

  /** A text frame from the client. */
  text(frame: string): void {
    const size = readResize(frame);
    if (size !== undefined) this.resize(size.cols, size.rows);
    else this.#finish({ code: codes.refused, reason: 'the only text frame is a resize' });
  }

  resize(cols: number, rows: number): void {
    this.#size = boundedSize(cols, rows);
    this.#wake();
  }

  /** The socket takes output again. */
  drained(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  /** The socket is gone, for whatever reason. The session lives on, and gets what was typed before. */
  leave(): void {
    this.#finish({ code: codes.done, reason: '', tell: false, flush: true });
    this.#leaving = true;
    if (this.#gone) this.#left(this);
  }

  /** Another attachment has the session. */
  displace(): void {
    // What still waits would come on top of what the newer one may send.
    if (this.over) this.#drop();
    const reason = 'Another connection attached to this session.';
    this.#finish({ frame: { type: 'detached', reason }, code: codes.done, reason: 'detached' });
  }

  /** The computer is no longer there to be typed at. */
  dismiss(reason: string): void {
    this.#finish({ code: codes.away, reason, flush: true });
  }

  /** Its place is needed. */
  cut(): void {
    this.#drop();
    if (!this.#leaving) this.#ends?.cut();
    this.#left(this);
  }

  async #passInput(): Promise<void> {
    for (;;) {
      const size = this.#size;
      this.#size = undefined;
      if (size !== undefined) {
        await this.#channel.send(1, encodeMessage(size satisfies TerminalResize));
      }
      const bytes = this.#queue.shift();
      if (bytes !== undefined) {
        await this.#channel.send(0, bytes);
      } else if (this.over) {
        return this.#channel.end();
      } else if (this.#size === undefined) {
        this.#news = Promise.withResolvers();
        await this.#news.promise;
      }
    }
  }

  async #passOutput(ends: Ends): Promise<void> {
    try {
      for (;;) {
        const piece = await this.#channel.receive();
        if (piece === undefined) break;
        // The last of the input is on its way, and nobody sees what it does.
        if (this.over) continue;
        if (piece.stream === 1) this.#hear(piece.bytes);
        else if (piece.stream !== 0) this.#fault('data on a stream that terminals do not have');
        else if (!ends.output(piece.bytes)) {
          this.#room = Promise.withResolvers();
          await this.#room.promise;
        }
      }
      const message = 'The terminal ended unexpectedly.';
      this.#finish({ frame: { type: 'error', message }, code: codes.broken, reason: 'it ended' });
    } catch (error) {
      if (error instanceof ChannelFailure && error.kind === 'lost') {
        this.dismiss('the computer’s agent is away; the session lives on');
      }
      this.#finish({ code: codes.broken, reason: 'the computer’s agent failed' });
    }
    this.#gone = true;
    if (this.#leaving) this.#left(this);
  }

  #hear(message: Buffer): void {
    let news: TerminalNews;
    try {
      news = decodeMessage(message, terminalNews);
    } catch {
      return this.#fault('no news of a terminal');
    }
    if (news.type === 'taken') {
      if (news.bytes > this.#pending) this.#fault('more input taken than there was');
      this.#pending -= news.bytes;
    } else if (news.type === 'detached') {
      this.displace();
    } else {
      const lost = this.#pending > 0 ? ({ input_lost: true } as const) : {};
      const frame = { type: 'exit', code: news.code, ...lost } as const;
      this.#finish({ frame, code: codes.done, reason: 'exit' });
    }
  }

  /** Once: whatever comes first is why. */
  #finish(verdict: Verdict): void {
    if (this.#verdict !== undefined) return;
    this.#verdict = verdict;
    this.#gone = this.#ends === undefined;
    if (verdict.flush !== true || this.#gone) this.#drop();
    this.#wake();
    this.drained();
    if (this.#ends !== undefined) this.#tell(this.#ends, verdict);
  }

  /** What is on its way in either direction is given up. */
  #drop(): void {
    this.#channel.reset(over);
    this.#queue.clear();
  }

  #tell(ends: Ends, { frame, code, reason, tell }: Verdict): void {
    if (tell === false) return;
    if (frame !== undefined) ends.control(frame);
    ends.close(code, reason);
  }

  #wake(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }
}
