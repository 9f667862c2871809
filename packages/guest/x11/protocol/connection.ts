// One connection to the X server: requests out; replies, errors and events in. Whoever owns the desktop
// may stop, replace or forge the server, so it is given limited time and limited room for everything; a
// server that breaks the protocol is as good as none.

import { createConnection, type Socket } from 'node:net';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { Packets } from './packets.ts';
import { Pending } from './pending.ts';
import { request } from './request.ts';
import { greeting, readSetup, type Setup } from './setup.ts';
import { DisplayError } from '../../desktop/trouble.ts';

export interface ConnectionOptions {
  /** The X server's socket. */
  readonly path: string;
  /** How long the server may take for the oldest request that it owes an answer. */
  readonly patienceMs: number;
}

/** 32 bytes. Valid during the call only. */
export type Listener = (event: Buffer) => void;

const packetTypes = { error: 0, reply: 1, keymapNotify: 11, genericEvent: 35 } as const;
/** A server that does not read what it is sent has stopped. */
const mostUnsent = 4 * 1024 * 1024;
/** Replies of which no caller says how long they may be. */
const usualReply = 65_536;
/** Packets tell 16 bits of a request's number, so the server must be heard before they come round. */
const mostUnheard = 0x8000;
const getInputFocus = request(43, 0);

export class Connection {
  readonly #socket: Socket;
  readonly #patienceMs: number;
  readonly #packets = new Packets({
    measure: (head) => this.#measure(head),
    packet: (packet) => this.#packet(packet),
  });
  readonly #pending = new Pending();
  readonly #listeners = new Map<Listener, (failure: DisplayError) => void>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #freeIds: number[] = [];
  #setup: Setup | undefined;
  #failure: DisplayError | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ids = 0;
  /** Of the last request sent, counted from 1; the wire has its last 16 bits. */
  #sent = 0;
  /** Of the last request that the server has spoken of. */
  #heard = 0;

  /** Resolves when the server has let us in. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options);
    await connection.#opened.promise;
    return connection;
  }

  private constructor({ path, patienceMs }: ConnectionOptions) {
    this.#patienceMs = patienceMs;
    const buffer = Buffer.allocUnsafeSlow(65_536);
    this.#socket = createConnection({
      path,
      onread: {
        buffer,
        callback: (length) => {
          this.#guarded(() => this.#packets.push(buffer.subarray(0, length)));
          return true;
        },
      },
    });
    this.#socket.once('connect', () => this.#socket.write(greeting()));
    this.#socket.once('error', (cause) => {
      this.#lose(new DisplayError('lost', 'the display is away', { cause }));
    });
    this.#socket.once('close', () => {
      this.#lose(new DisplayError('lost', 'the display went away'));
      this.#ended.resolve();
    });
    this.#opened.promise.catch(() => {});
    this.#timer = setTimeout(() => this.#tooLate(), patienceMs);
  }

  get setup(): Setup {
    if (this.#setup === undefined) throw new DisplayError('lost', 'the display has not answered');
    return this.#setup;
  }

  get lost(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves when the connection is no more. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** A name for a window of ours. */
  newId(): number {
    const { idBase, idMask } = this.setup;
    const id = this.#freeIds.pop() ?? idBase + (this.#ids += 1);
    if (id - idBase > idMask) throw new DisplayError('lost', 'the display has no more names');
    return id;
  }

  freeId(id: number): void {
    this.#freeIds.push(id);
  }

  /** Nobody hears whether it went well. */
  send(bytes: Buffer): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#socket.writableLength > mostUnsent) {
      throw this.#lose(new DisplayError('lost', 'the display does not read'));
    }
    this.#sent += 1;
    this.#write(bytes);
    if (this.#sent - this.#heard > mostUnheard && this.#pending.oldest === undefined) {
      this.#expect(getInputFocus, { most: 32, resolve() {}, reject() {} });
    }
  }

  /** Resolves when the server has carried it out. */
  done({ signal }: Context, bytes: Buffer): Promise<void> {
    return this.#wait(signal, (resolve, reject) => {
      const leave = this.#expect(bytes, { resolve: () => resolve(), reject });
      // It has no reply: the reply to a request after it tells that it did not fail.
      this.#expect(getInputFocus, { most: 32, resolve() {}, reject() {} });
      return leave;
    });
  }

  /** `decode` reads the reply, the head of 32 bytes included. What it reads beyond the end is nonsense. */
  ask<Answer>(
    { signal }: Context,
    bytes: Buffer,
    decode: (reply: Buffer) => Answer,
    most = usualReply,
  ): Promise<Answer> {
    return this.#wait(signal, (resolve, reject) =>
      this.#expect(bytes, {
        most,
        resolve: (reply) => {
          try {
            resolve(decode(reply));
          } catch (cause) {
            const failure = new DisplayError('lost', 'the display answered nonsense', { cause });
            reject(failure);
            throw failure;
          }
        },
        reject,
      }),
    );
  }

  /** Resolves when the server has carried out all that was sent. */
  settled(context: Context): Promise<void> {
    return this.ask(context, getInputFocus, () => undefined, 32);
  }

  /** `lost` is called when no event will come any more. Answers what ends it. */
  listen(listener: Listener, lost: (failure: DisplayError) => void = () => {}): () => void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#listeners.set(listener, lost);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#lose(new DisplayError('lost', 'the agent closed the display'));
  }

  async #wait<Answer>(
    signal: AbortSignal,
    begin: (resolve: (answer: Answer) => void, reject: (error: unknown) => void) => () => void,
  ): Promise<Answer> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const abandon = begin(resolve, reject);
    const leave = () => {
      abandon();
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  #expect(bytes: Buffer, expectation: Parameters<Pending['add']>[1]): () => void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#sent += 1;
    try {
      const abandon = this.#pending.add(this.#sent, expectation);
      this.#timer ??= setTimeout(() => this.#tooLate(), this.#patienceMs);
      this.#write(bytes);
      return abandon;
    } catch (error) {
      throw this.#lose(error as DisplayError);
    }
  }

  /** What is sent in one go is written in one go: a window alone is described by a dozen requests. */
  #write(bytes: Buffer): void {
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      process.nextTick(() => this.#socket.uncork());
    }
    this.#socket.write(bytes);
  }

  /** Runs when the oldest request may be too old, and again for the one that is the oldest then. */
  #tooLate(): void {
    this.#timer = undefined;
    const oldest = this.#setup === undefined ? 0 : this.#pending.oldest;
    if (oldest === undefined) return;
    const left = oldest + this.#patienceMs - performance.now();
    if (this.#setup !== undefined && left > 0) {
      this.#timer = setTimeout(() => this.#tooLate(), Math.ceil(left));
    } else {
      this.#lose(new DisplayError('lost', 'the display does not answer'));
    }
  }

  #measure(head: Buffer): { more: number; wanted: boolean } {
    if (this.#setup === undefined) return { more: 4 * head.readUInt16LE(6), wanted: true };
    const type = head.readUInt8(0);
    if (type !== packetTypes.reply && (type & 0x7f) !== packetTypes.genericEvent) {
      return { more: 0, wanted: true };
    }
    const more = 4 * head.readUInt32LE(4);
    if (type !== packetTypes.reply) return { more, wanted: false };
    const sequence = this.#sequenceOf(head);
    this.#pending.reached(sequence);
    return { more, wanted: this.#pending.wants(sequence, head.length + more) };
  }

  #packet(packet: Buffer): void {
    if (this.#setup === undefined) {
      this.#setup = readSetup(packet);
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#opened.resolve();
      return;
    }
    const type = packet.readUInt8(0);
    if ((type & 0x7f) === packetTypes.keymapNotify) return;
    const sequence = this.#sequenceOf(packet);
    this.#heard = sequence;
    this.#pending.reached(sequence);
    if (type === packetTypes.reply) {
      this.#pending.replied(sequence, packet, 32 + 4 * packet.readUInt32LE(4));
    } else if (type === packetTypes.error) {
      this.#pending.failed(sequence, packet.readUInt8(1), packet.readUInt8(10));
    } else {
      for (const listener of this.#listeners.keys()) listener(packet);
    }
  }

  #sequenceOf(packet: Buffer): number {
    const low = packet.readUInt16LE(2);
    const sequence = this.#heard - (this.#heard % 0x10000) + low;
    const next = sequence < this.#heard ? sequence + 0x10000 : sequence;
    if (next > this.#sent) throw new DisplayError('lost', 'the display answers what nobody asked');
    return next;
  }

  /** What cannot be understood ends the connection, and nothing else. */
  #guarded(work: () => void): void {
    if (this.#failure !== undefined) return;
    try {
      work();
    } catch (cause) {
      this.#lose(
        cause instanceof DisplayError
          ? cause
          : new DisplayError('lost', 'the display answered nonsense', { cause }),
      );
    }
  }

  #lose(failure: DisplayError): DisplayError {
    if (this.#failure !== undefined) return this.#failure;
    this.#failure = failure;
    clearTimeout(this.#timer);
    this.#socket.destroy();
    this.#opened.reject(failure);
    this.#pending.rejectAll(failure);
    const deaf = [...this.#listeners.values()];
    this.#listeners.clear();
    for (const tell of deaf) tell(failure);
    return failure;
  }
}
