// The WebSockets into the computers of this host: opened by kind, counted, pinged, and ended with what they
// were about. The control plane has judged the caller's credential and passes bytes on.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import {
  accountHeader,
  controlHeader,
  type GuestFailure,
  type HostSocketKind,
} from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { closeCodes } from '@cubicle/contract/sockets.ts';
import type { Context } from '../engine/engine.ts';
import type { SocketCall, SocketEnd, SocketKind, SocketRefusal } from './kind.ts';

export interface SocketsParts {
  readonly kinds: Partial<Record<HostSocketKind, SocketKind>>;
  readonly instanceOf: (computer: string) => string | undefined;
  /** Why a guest cannot be called now. */
  readonly guestState: (
    context: Context,
    computer: string,
  ) => Promise<'absent' | 'not_running' | 'suspended' | 'starting' | undefined>;
  readonly log: (problem: unknown) => void;
  readonly pingMs?: number;
}

export interface Upgrade {
  readonly computer: string;
  readonly kind: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

interface Held {
  readonly computer: string;
  readonly kind: SocketKind;
  /** Undefined until the upgrade is through; it counts from its admission on. */
  socket: WebSocket | undefined;
  heard: boolean;
}

/** Within two of these a caller that vanished without a word is found out. Proxies cut what rests for a minute. */
const usualPingMs = 25_000;
/** How long a caller may take to answer a close. */
const goodbyeMs = 10_000;

export class Sockets {
  readonly #parts: SocketsParts;
  readonly #held = new Set<Held>();
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.socketMessage,
    // Viewers of RFB used to ask for this one; a socket without any is as good.
    handleProtocols: (offered) => (offered.has('binary') ? 'binary' : false),
  });
  readonly #pinging: NodeJS.Timeout;
  #stopping = false;

  constructor(parts: SocketsParts) {
    this.#parts = parts;
    this.#pinging = setInterval(() => this.#ping(), parts.pingMs ?? usualPingMs);
    this.#pinging.unref();
  }

  async upgrade({ request, socket, head, ...asked }: Upgrade): Promise<void> {
    // Nobody else listens for it before the upgrade, and unheard it would end the whole process.
    socket.on('error', () => {});
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    const kind = this.#parts.kinds[asked.kind as HostSocketKind];
    if (kind === undefined) return refuse(socket, 404, { error: 'no such socket' });
    if (this.#stopping) return refuse(socket, 503, { error: 'the host is stopping' });
    const held: Held = { computer: asked.computer, kind, socket: undefined, heard: true };
    this.#held.add(held);
    const call = {
      computer: asked.computer,
      query: asked.query,
      control: request.headers[controlHeader] === '1',
      account: String(request.headers[accountHeader] ?? ''),
    };
    const admitted = await this.#admit({ signal: gone.signal }, call, kind).catch((error) => {
      this.#held.delete(held);
      throw error;
    });
    if ('error' in admitted) {
      this.#held.delete(held);
      const { status = 409, ...body } = { status: undefined, ...admitted };
      return refuse(socket, status, body);
    }
    if (socket.destroyed || this.#stopping) {
      this.#held.delete(held);
      kind.abandon?.(admitted);
      return refuse(socket, 503, { error: 'the host is stopping' });
    }
    // From here on the library looks after the stream, and refuses a handshake that is none.
    socket.once('close', () => {
      this.#held.delete(held);
      if (held.socket === undefined) kind.abandon?.(admitted);
    });
    this.#server.handleUpgrade(request, socket, head, (opened) =>
      this.#opened(held, admitted, opened),
    );
  }

  async #admit(
    context: Context,
    asked: Omit<SocketCall, 'instance'>,
    kind: SocketKind,
  ): Promise<SocketCall | GuestFailure | SocketRefusal> {
    const { computer } = asked;
    const state = await this.#parts.guestState(context, computer);
    if (state === 'starting') return { failure: state, error: 'The computer is starting.' };
    if (state !== undefined) return { failure: state, error: 'The computer is not running.' };
    const instance = this.#parts.instanceOf(computer);
    if (instance === undefined) return { failure: 'absent', error: 'No such computer here.' };
    if (kind.most !== undefined && this.#count(computer, kind) > kind.most) {
      const error = `At most ${kind.most} of these sockets are open on one computer.`;
      return { failure: 'too_many_sockets', error, limit: kind.most };
    }
    const call = { ...asked, instance };
    return (await kind.check(context, call)) ?? call;
  }

  /** It ended: whatever was about its running is over. */
  changed(computer: string, end: SocketEnd): void {
    for (const held of this.#held) {
      if (held.computer !== computer) continue;
      if (held.kind.lasting === true && end !== 'removed') continue;
      this.#end(held, end);
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#pinging);
    const closing = [...this.#held].flatMap(({ socket }) => (socket === undefined ? [] : [socket]));
    const closed = closing.map((socket) => new Promise((done) => socket.once('close', done)));
    for (const held of this.#held) this.#end(held, 'shutdown');
    await Promise.all(closed);
  }

  #count(computer: string, kind: SocketKind): number {
    return [...this.#held].filter((held) => held.computer === computer && held.kind === kind)
      .length;
  }

  #opened(held: Held, call: SocketCall, socket: WebSocket): void {
    held.socket = socket;
    socket.on('pong', () => (held.heard = true));
    // A caller that breaks the protocol is closed by the library; there is nothing more to do about it.
    socket.on('error', () => {});
    try {
      held.kind.open(call, socket);
    } catch (error) {
      this.#parts.log(error);
      socket.terminate();
    }
  }

  #end({ kind, socket }: Held, end: SocketEnd): void {
    if (socket === undefined) return;
    const word = kind.farewell?.(end);
    if (word !== undefined) socket.send(word);
    socket.close(codeOf[end], end);
    // What is paused or silent never hears a close.
    setTimeout(() => socket.terminate(), goodbyeMs).unref();
  }

  #ping(): void {
    for (const held of this.#held) {
      const { socket } = held;
      if (socket === undefined || socket.readyState !== socket.OPEN) continue;
      if (!held.heard) {
        socket.terminate();
        continue;
      }
      held.heard = false;
      socket.ping();
    }
  }
}

const codeOf: Record<SocketEnd, number> = {
  stopped: closeCodes.notRunning,
  suspended: closeCodes.notRunning,
  restarted: closeCodes.replaced,
  removed: closeCodes.gone,
  shutdown: closeCodes.goingAway,
};

/** Plain HTTP, as every other answer of the host's. */
export function refuse(socket: Duplex, status: number, value: object): void {
  const body = JSON.stringify(value);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
