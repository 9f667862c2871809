// One link between a host and an agent: frames in, frames out, and the channels between. It is given
// bytes and gives bytes; whoever owns the socket feeds it and ends it when it throws.

import { Channel, type Outlet } from './channel.ts';
import { type Frame, FrameDecoder, frameHeader, type FrameType, type Side } from './frames.ts';
import { ProtocolError } from './protocol-error.ts';
import { counts } from './sizes.ts';

/** Everything that waits takes one first. */
export interface Context {
  readonly signal: AbortSignal;
}

export interface Wire {
  /** False when it has enough to do; `Mux.drained` is called when it takes more. */
  write(header: Buffer, payload: Buffer): boolean;
}

export interface Ears {
  hello(payload: Buffer): void;
  /** Agent: a request of the host's. */
  open?(channel: Channel, payload: Buffer): void;
  /** Host: something the agent tells unasked. */
  event?(payload: Buffer): void;
}

/** So many pings unanswered are as good as none answered. */
const mostPings = 8;

export class Mux implements Outlet {
  readonly #side: Side;
  readonly #wire: Wire;
  readonly #ears: Ears;
  readonly #decoder: FrameDecoder;
  readonly #channels = new Map<number, Channel>();
  #pings: PromiseWithResolvers<void>[] = [];
  #lastId = 0;
  #lastPing = 0n;
  #greeted = false;
  #clear = true;
  #ended: { readonly cause: unknown } | undefined;

  constructor(side: Side, wire: Wire, ears: Ears) {
    this.#side = side;
    this.#wire = wire;
    this.#ears = ears;
    this.#decoder = new FrameDecoder(side === 'host' ? 'agent' : 'host');
  }

  get clear(): boolean {
    return this.#clear;
  }

  /** Channels in use, those that wait for the agent's last word included. */
  get busy(): number {
    return this.#channels.size;
  }

  hello(payload: Buffer): void {
    this.send('hello', 0, 0, payload);
  }

  event(payload: Buffer): void {
    this.send('event', 0, 0, payload);
  }

  /** Host: asks for something. Nothing when all channels are taken. The signal ends what waits on it. */
  open({ signal }: Context, payload: Buffer): Channel | undefined {
    signal.throwIfAborted();
    if (this.#ended !== undefined) throw this.#ended.cause;
    if (this.#channels.size >= counts.channels) return undefined;
    const channel = new Channel(this.#freeId(), this.#side, this);
    const abort = () => channel.reset(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    channel.onOver = () => signal.removeEventListener('abort', abort);
    this.#channels.set(channel.id, channel);
    this.send('open', channel.id, 0, payload);
    return channel;
  }

  /** Host: returns when the agent has answered. */
  async ping({ signal }: Context): Promise<void> {
    signal.throwIfAborted();
    if (this.#ended !== undefined) throw this.#ended.cause;
    const answered = Promise.withResolvers<void>();
    if (this.#pings.length < mostPings) {
      const nonce = Buffer.allocUnsafe(8);
      nonce.writeBigUInt64BE(this.#lastPing + BigInt(this.#pings.length) + 1n, 0);
      this.#pings.push(answered);
      this.send('ping', 0, 0, nonce);
    } else {
      this.#pings.at(-1)?.promise.then(answered.resolve, answered.reject);
    }
    const abort = () => answered.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await answered.promise;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  send(type: FrameType, channel: number, stream: number, payload: Buffer): void {
    if (this.#ended !== undefined) return;
    this.#clear = this.#wire.write(frameHeader(type, channel, stream, payload.length), payload);
  }

  release(channel: Channel): void {
    this.#channels.delete(channel.id);
  }

  drained(): void {
    this.#clear = true;
    for (const channel of this.#channels.values()) channel.cleared();
  }

  /** Throws a ProtocolError for whatever the other side may not say. */
  feed(chunk: Buffer): void {
    this.#decoder.push(chunk, (frame) => {
      if (this.#ended === undefined) this.#take(frame);
    });
  }

  /** The link is over; everything that waits on it learns why. */
  close(cause: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = { cause };
    for (const channel of this.#channels.values()) channel.lose(cause);
    for (const ping of this.#pings) ping.reject(cause);
    this.#channels.clear();
    this.#pings = [];
  }

  #take(frame: Frame): void {
    const { type, payload } = frame;
    if ((type === 'hello') === this.#greeted) {
      throw new ProtocolError('frame_order', `${type} ${this.#greeted ? 'again' : 'before hello'}`);
    }
    if (type === 'hello') {
      this.#greeted = true;
      this.#ears.hello(payload);
    } else if (type === 'event') this.#ears.event?.(payload);
    else if (type === 'ping') this.send('pong', 0, 0, payload);
    else if (type === 'pong') this.#ponged(payload);
    else if (type === 'open') this.#opened(frame);
    else this.#forChannel(frame);
  }

  #forChannel(frame: Frame): void {
    const channel = this.#channels.get(frame.channel);
    if (channel !== undefined) return channel.take(frame);
    // What a host grants or gives up may cross the last word of its agent.
    if (this.#side === 'agent' && (frame.type === 'credit' || frame.type === 'reset')) return;
    throw new ProtocolError('channel_unknown', `${frame.type} on channel ${frame.channel}`);
  }

  #opened({ channel: id, payload }: Frame): void {
    if (this.#channels.has(id)) throw new ProtocolError('frame_order', `channel ${id} is open`);
    if (this.#channels.size >= counts.channels) {
      throw new ProtocolError('channel_limit', `more than ${counts.channels} channels`);
    }
    const channel = new Channel(id, this.#side, this);
    this.#channels.set(id, channel);
    this.#ears.open?.(channel, payload);
  }

  #ponged(payload: Buffer): void {
    const ping = this.#pings.shift();
    this.#lastPing += 1n;
    if (ping === undefined || payload.readBigUInt64BE(0) !== this.#lastPing) {
      throw new ProtocolError('frame_order', 'a pong that answers no ping');
    }
    ping.resolve();
  }

  #freeId(): number {
    do this.#lastId = this.#lastId === 0xffffffff ? 1 : this.#lastId + 1;
    while (this.#channels.has(this.#lastId));
    return this.#lastId;
  }
}
