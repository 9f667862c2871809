// Every upgrade passes here: the credential in the address is judged, then bytes go to the computer's host
// and back. What asks for an upgrade and names no socket is answered as an ordinary request.

import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type PublicSocket, publicSockets } from '@cubicle/contract/sockets.ts';
import type { SocketCalls } from '../app/socket-calls.ts';
import type { Place, Sockets, SocketWish } from '../app/sockets.ts';
import type { Log } from '../log.ts';
import { lineOf } from './line.ts';
import type { HttpMetrics } from './metrics.ts';
import { Passage } from './passage.ts';
import { refuse } from './refuse.ts';
import { newRequestId, requestIdHeader } from './request-id.ts';

export interface UpgradesParts {
  readonly sockets: Sockets;
  readonly calls: SocketCalls;
  readonly metrics: HttpMetrics;
  readonly log: Log;
}

/** Whoever rests is found out by the host's pings; this finds a connection that the network forgot. */
const keepAliveMs = 30_000;
const key = /^[A-Za-z0-9+/]{22}==$/;

export class Upgrades {
  readonly #parts: UpgradesParts;

  constructor(parts: UpgradesParts) {
    this.#parts = parts;
  }

  /**
   * Takes over the connection. The request's address is logged nowhere: it holds a credential.
   */
  async pass(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    wish: SocketWish & { readonly query: string },
  ): Promise<void> {
    const { sockets, calls, metrics, log } = this.#parts;
    const startedAt = performance.now();
    const requestId = newRequestId();
    const gone = new AbortController();
    // Node has let go of the socket: an error that nobody listens for would end the whole process.
    socket.on('error', () => {});
    socket.once('close', () => gone.abort());
    let status = 101;
    let place: Place | undefined;
    try {
      const admitted = await sockets.admit(wish);
      place = sockets.enter(admitted);
      socket.once('close', place.leave);
      const handshake = { headers: handshakeOf(request), query: wish.query };
      const host = await calls.open(admitted, handshake, gone.signal);
      if (socket.destroyed) host.socket.destroy();
      else {
        socket.setTimeout(0).setNoDelay(true).setKeepAlive(true, keepAliveMs);
        socket.write(switching(host.headers, requestId));
        const passage = new Passage(socket, host.socket);
        passage.begin(host.head);
        // What the caller sent without waiting for the answer.
        if (head.length > 0) host.socket.write(head);
        place.join(passage);
      }
    } catch (thrown) {
      place?.leave();
      status = this.#refuse(request, socket, requestId, thrown);
    }
    const ms = performance.now() - startedAt;
    metrics.answered(`socket ${wish.kind}`, 'GET', status, ms);
    log.debug({ request_id: requestId, route: `socket ${wish.kind}`, status, ms }, 'answered');
  }

  /** In the shape of every other refusal, and the last word on this connection. */
  #refuse(request: IncomingMessage, socket: Socket, requestId: string, thrown: unknown): number {
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    const line = lineOf(socket);
    refuse(
      { request, response, line, requestId, query: '', meter: undefined },
      thrown,
      this.#parts.log,
    );
    return response.statusCode;
  }
}

/** Undefined for what is no upgrade to one of our sockets. `segments` are those below the base path. */
export function socketWish(
  request: IncomingMessage,
  segments: readonly string[] | undefined,
  query: string,
): (SocketWish & { readonly query: string }) | undefined {
  const { method, headers } = request;
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return undefined;
  if (headers['sec-websocket-version'] !== '13') return undefined;
  if (!key.test(headers['sec-websocket-key'] ?? '')) return undefined;
  const [first, computerId, name = '', more] = segments ?? [];
  if (first !== 'computers' || computerId === undefined || more !== undefined) return undefined;
  if (!Object.hasOwn(publicSockets, name)) return undefined;
  const rest = new URLSearchParams(query);
  const token = rest.get('token');
  if (token === null) return undefined;
  rest.delete('token');
  const { kind } = publicSockets[name as PublicSocket];
  return { computerId, kind, token, query: rest.toString() };
}

function handshakeOf({ headers }: IncomingMessage): Record<string, string> {
  const protocol = headers['sec-websocket-protocol'];
  return {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': headers['sec-websocket-key'] ?? '',
    ...(protocol !== undefined && { 'sec-websocket-protocol': protocol }),
  };
}

function switching(headers: IncomingMessage['headers'], requestId: string): string {
  const accept = headers['sec-websocket-accept'] ?? '';
  const protocol = headers['sec-websocket-protocol'];
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
    `${requestIdHeader}: ${requestId}`,
    '\r\n',
  ].join('\r\n');
}
