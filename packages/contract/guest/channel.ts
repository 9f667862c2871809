// One channel of a link: a request of the host's, its answer, and data both ways under credit. It keeps
// the order of frames and both windows, and knows nothing of sockets.
//
// Each side has a last word: the host `end` or `reset`, the agent `refuse`, `end` or `reset`. A side that
// hears the other's gives its own if it has not, so that neither ever meets a channel it has forgotten.

import type { Frame, FrameType, Side } from './frames.ts';
import { ProtocolError } from './protocol-error.ts';
import { frameCost, sizes } from './sizes.ts';

export interface Piece {
  readonly stream: number;
  readonly bytes: Buffer;
}

export interface Answer {
  readonly accepted: boolean;
  readonly payload: Buffer;
}

/** Why a channel came to nothing: the other side reset it, or the link ended. */
export class ChannelFailure extends Error {
  readonly kind: 'reset' | 'lost';

  constructor(kind: ChannelFailure['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

export interface Outlet {
  send(type: FrameType, channel: number, stream: number, payload: Buffer): void;
  /** False while the socket has enough to do. */
  readonly clear: boolean;
  release(channel: Channel): void;
}

const nothing = Buffer.alloc(0);

export class Channel {
  readonly id: number;
  readonly #side: Side;
  readonly #outlet: Outlet;
  #credit: number = sizes.window;
  #allowance: number = sizes.window;
  /** Taken from the queue and not yet granted again. */
  #owed = 0;
  #queue: Piece[] = [];
  #answer: Answer | undefined;
  #accepted = false;
  #said: 'open' | 'ended' | 'reset' = 'open';
  #heard: 'open' | 'ended' | 'reset' = 'open';
  #failure: { readonly cause: unknown } | undefined;
  /** What was heard to its end stays good, though the other side gave up after it. */
  #keepsWhole = false;
  #whole = false;
  #news: PromiseWithResolvers<void> | undefined;
  /** Called once: when the channel fails, and at the host also when the agent has had its last word. */
  onOver: (() => void) | undefined;

  constructor(id: number, side: Side, outlet: Outlet) {
    this.id = id;
    this.#side = side;
    this.#outlet = outlet;
  }

  /** True once the channel failed or the other side had its last word. */
  get over(): boolean {
    return this.#failure !== undefined || this.#heard !== 'open';
  }

  /** The other side gave up, or the link is gone: for an agent, nobody waits for an answer. */
  get abandoned(): boolean {
    return this.#failure !== undefined;
  }

  /** Agent: takes all of what was sent even when the host, after its end, no longer waits. */
  keepWhole(): void {
    this.#keepsWhole = true;
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await this.#change();
  }

  /** Host: waits for `accept` or `refuse`. */
  async answer(): Promise<Answer> {
    for (;;) {
      if (this.#answer !== undefined) return this.#answer;
      if (this.#failure !== undefined) throw this.#failure.cause;
      await this.#change();
    }
  }

  /** The next piece of data, which is then paid for; nothing when the other side ended. */
  async receive(): Promise<Piece | undefined> {
    for (;;) {
      const piece = this.#queue.shift();
      if (piece !== undefined) {
        this.#repay(piece.bytes.length + frameCost);
        return piece;
      }
      if (this.#failure !== undefined && !this.#kept) throw this.#failure.cause;
      if (this.#heard !== 'open') return undefined;
      await this.#change();
    }
  }

  /** Sends all of it as credit allows. False: the other side wants no more, and some may be unsent. */
  async send(stream: number, bytes: Buffer): Promise<boolean> {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#said !== 'open' || (this.#side === 'host' && this.over)) return false;
      const worthwhile = Math.min(rest.length, sizes.worthSending) + frameCost;
      if (!this.#outlet.clear || this.#credit < worthwhile) {
        await this.#change();
        continue;
      }
      const length = Math.min(rest.length, sizes.payload, this.#credit - frameCost);
      this.#credit -= length + frameCost;
      this.#outlet.send('data', this.id, stream, rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    return this.#said === 'open';
  }

  /** Agent. */
  accept(payload: Buffer): void {
    if (this.#said !== 'open') return;
    this.#accepted = true;
    this.#outlet.send('accept', this.id, 0, payload);
  }

  /** Agent: the last word. After an answer only a reset can take it back. */
  refuse(payload: Buffer, cause: unknown): void {
    if (this.#accepted) return this.reset(cause);
    if (this.#said !== 'open') return;
    this.#said = 'ended';
    this.#outlet.send('refuse', this.id, 0, payload);
    this.#queue = [];
    this.#releaseIfDone();
  }

  end(): void {
    if (this.#said !== 'open') return;
    this.#said = 'ended';
    this.#outlet.send('end', this.id, 0, nothing);
    this.#releaseIfDone();
  }

  /** Gives up: what waits here throws `cause`. Without effect once everything was heard. */
  reset(cause: unknown): void {
    if (this.#failure !== undefined || (this.#side === 'host' && this.#heard !== 'open')) return;
    this.#fail(cause);
    this.#sayReset();
    this.#releaseIfDone();
  }

  /** The link is gone; what had been heard to its end stays good. */
  lose(cause: unknown): void {
    this.#said = 'reset';
    if (this.#heard !== 'ended' || this.#side === 'agent') this.#fail(cause);
    this.#wake();
  }

  /** The socket takes data again. */
  cleared(): void {
    this.#wake();
  }

  take({ type, stream, payload }: Frame): void {
    if (type === 'credit') this.#granted(payload.readUInt32BE(0));
    else if (type === 'reset') this.#wasReset();
    else if (this.#heard !== 'open') throw this.#disorder(type);
    else if (type === 'data') this.#received({ stream, bytes: payload });
    else if (type === 'end') this.#ended();
    else if (type === 'accept' || type === 'refuse') this.#answered(type === 'accept', payload);
    else throw this.#disorder(type);
    this.#wake();
  }

  #answered(accepted: boolean, payload: Buffer): void {
    if (this.#answer !== undefined) throw this.#disorder('a second answer');
    this.#answer = { accepted, payload };
    if (!accepted) this.#ended();
  }

  #received(piece: Piece): void {
    if (this.#side === 'host' && this.#answer === undefined) throw this.#disorder('data');
    const cost = piece.bytes.length + frameCost;
    if (cost > this.#allowance) throw new ProtocolError('credit', 'data beyond the credit given');
    this.#allowance -= cost;
    // Nobody reads what comes after a reset or a refusal, and nothing is granted for it.
    if (this.#failure === undefined && !(this.#side === 'agent' && this.#said !== 'open')) {
      this.#queue.push(piece);
    }
  }

  #ended(): void {
    if (this.#side === 'host' && this.#answer === undefined) throw this.#disorder('end');
    this.#heard = 'ended';
    this.#whole = true;
    // The agent has no use for more, so the host's last word comes at once.
    if (this.#side === 'host' && this.#said === 'open') this.#sayReset();
    this.#releaseIfDone();
    if (this.#side === 'host') this.#tellOver();
  }

  #wasReset(): void {
    if (this.#side === 'host' && this.#heard !== 'open') throw this.#disorder('reset');
    this.#heard = 'reset';
    this.#fail(new ChannelFailure('reset', 'the other side gave up'));
    if (this.#side === 'host' ? this.#said === 'open' : this.#said !== 'ended') this.#sayReset();
    this.#releaseIfDone();
  }

  #sayReset(): void {
    if (this.#said === 'reset') return;
    // An agent that already ended has had its last word.
    if (this.#side === 'host' || this.#said === 'open') {
      this.#outlet.send('reset', this.id, 0, nothing);
    }
    this.#said = 'reset';
  }

  #releaseIfDone(): void {
    if (this.#heard === 'open') return;
    if (this.#side === 'host' || this.#said !== 'open') this.#outlet.release(this);
  }

  #granted(credit: number): void {
    if (credit === 0 || this.#credit + credit > sizes.window) {
      throw new ProtocolError('credit', `a grant of ${credit} bytes beyond the window`);
    }
    this.#credit += credit;
  }

  #repay(cost: number): void {
    this.#owed += cost;
    if (this.#owed * 4 < sizes.window || this.over) return;
    // After its last word an agent says nothing, not even this.
    if (this.#side === 'agent' && this.#said !== 'open') return;
    const grant = Buffer.allocUnsafe(4);
    grant.writeUInt32BE(this.#owed, 0);
    this.#allowance += this.#owed;
    this.#owed = 0;
    this.#outlet.send('credit', this.id, 0, grant);
  }

  #fail(cause: unknown): void {
    this.#failure ??= { cause };
    if (!this.#kept) this.#queue = [];
    this.#wake();
    this.#tellOver();
  }

  get #kept(): boolean {
    return this.#keepsWhole && this.#whole;
  }

  #tellOver(): void {
    const tell = this.onOver;
    this.onOver = undefined;
    tell?.();
  }

  #change(): Promise<void> {
    this.#news ??= Promise.withResolvers<void>();
    return this.#news.promise;
  }

  #wake(): void {
    this.#news?.resolve();
    this.#news = undefined;
  }

  #disorder(what: string): ProtocolError {
    return new ProtocolError('frame_order', `${what} on channel ${this.id} out of turn`);
  }
}
