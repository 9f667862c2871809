// The listening socket: takes requests in, sends each to the API's door or to the pages beside it,
// and drains when the service stops.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Refusal } from '@cubicle/contract/errors.ts';
import { basePath } from '@cubicle/contract/routes.ts';
import { sizeInWords } from '@cubicle/contract/limits.ts';
import type { Log } from '../log.ts';
import type { Door } from './door.ts';
import { partKindly } from './farewell.ts';
import type { HttpMetrics } from './metrics.ts';
import type { Pages } from './pages.ts';
import { refuse } from './refuse.ts';
import { lineOf } from './line.ts';
import { type Exchange, send } from './reply.ts';
import { newRequestId, requestIdHeader } from './request-id.ts';
import { readTarget } from './target.ts';
import { socketWish, type Upgrades } from './upgrades.ts';

const baseSegments = basePath.slice(1).split('/');
const headerBytes = 16 * 1024;

export interface ListenerParts {
  readonly pages: Pages;
  readonly metrics: HttpMetrics;
  readonly log: Log;
}

export class Listener {
  readonly #server: Server;
  readonly #parts: ListenerParts;
  /** Undefined while the service is starting or stopping. */
  #door: Door | undefined;
  #upgrades: Upgrades | undefined;
  #draining = false;
  readonly #underWay = new Set<ServerResponse>();
  /** Connections that have not brought a request yet. */
  readonly #unused = new Set<Socket>();

  constructor(parts: ListenerParts) {
    this.#parts = parts;
    this.#server = createServer({
      maxHeaderSize: headerBytes,
      keepAliveTimeout: 65_000,
      headersTimeout: 60_000,
      // Bodies have their own, stricter times; this one ends what they do not cover.
      requestTimeout: 120_000,
      connectionsCheckingInterval: 5_000,
      // A socket takes its connection whole; behind answers that are owed it is an ordinary request.
      shouldUpgradeCallback: (request) =>
        this.#upgrades !== undefined &&
        lineOf(request.socket).idle &&
        wishOf(request) !== undefined,
    });
    this.#server.on('upgrade', (request, socket, head) => {
      const wish = wishOf(request);
      if (wish === undefined || this.#upgrades === undefined) socket.destroy();
      else void this.#upgrades.pass(request, socket as Socket, head, wish);
    });
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response, () => {});
    // A side that has said everything it had to say is still answered.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#server.on('connection', (socket) => {
      partKindly(socket);
      this.#unused.add(socket);
      socket.once('close', () => this.#unused.delete(socket));
    });
    this.#server.on('request', answer);
    // An expectation we do not know is not kept, which a server is free to do.
    this.#server.on('checkExpectation', answer);
    this.#server.on('checkContinue', (request, response) => {
      void this.#answer(request, response, () => response.writeContinue());
    });
    this.#server.on('clientError', answerUnreadable);
    // A tunnel is nothing we offer; without a listener the connection would just vanish.
    this.#server.on('connect', (_request, socket) => {
      // Node has let go of the socket: an error that nobody listens for would end the whole process.
      socket.on('error', () => {});
      endInTurn(socket as Socket, 'request_malformed');
    });
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject).listen(port, host, resolve);
    await promise;
    this.#server.off('error', reject);
    return this.#server.address() as AddressInfo;
  }

  open(door: Door, upgrades: Upgrades): void {
    this.#door = door;
    this.#upgrades = upgrades;
  }

  get ready(): boolean {
    return this.#door !== undefined && !this.#draining;
  }

  /** Takes nothing new, lets what is under way finish, and cuts what has not by the deadline. */
  async drain(deadlineMs: number): Promise<void> {
    this.#draining = true;
    for (const response of this.#underWay) response.shouldKeepAlive = false;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    // Browsers open some in advance. Node counts them as busy, not as idle, and would wait for them.
    for (const socket of this.#unused) if (socket.bytesRead === 0) socket.destroy();
    const cut = setTimeout(() => this.#server.closeAllConnections(), deadlineMs);
    await closed;
    clearTimeout(cut);
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    proceed: () => void,
  ): Promise<void> {
    this.#unused.delete(request.socket);
    const line = lineOf(request.socket);
    const turn = line.join(request, response);
    this.#underWay.add(response);
    response.once('close', () => {
      this.#underWay.delete(response);
      if (this.#draining) this.#server.closeIdleConnections();
    });
    if (turn !== undefined) await turn;
    // What follows an answer that ends the connection is not obeyed, for nobody would hear of it.
    if (line.ending || request.socket.destroyed) return;
    const { segments, redirect, query } = readTarget(request.url ?? '');
    const startedAt = performance.now();
    const exchange: Exchange = {
      request,
      response,
      line,
      requestId: newRequestId(),
      query,
      meter: undefined,
    };
    // Node drops what was sent behind a request to upgrade, so nobody may wait for answers to it.
    if (this.#draining || request.headers.upgrade !== undefined) {
      response.shouldKeepAlive = false;
    }
    if (redirect !== undefined) {
      send(exchange, 308, undefined, { Location: redirect, 'Content-Length': 0 });
      return;
    }
    const { pages, metrics, log } = this.#parts;
    let name = 'refused';
    let allow: string | undefined;
    try {
      const inApi = segments && baseSegments.every((part, i) => segments[i] === part);
      if (inApi === false) {
        name = await pages.answer(exchange, segments ?? []);
      } else {
        if (this.#door === undefined) throw new Refusal('not_ready');
        const match = this.#door.find(segments?.slice(baseSegments.length));
        allow = match?.place.allow;
        name = await this.#door.pass(exchange, match, proceed);
      }
    } catch (thrown) {
      const unsupported = thrown instanceof Refusal && thrown.error === 'method_unsupported';
      refuse(exchange, thrown, log, unsupported && allow !== undefined ? { Allow: allow } : {});
    }
    const ms = performance.now() - startedAt;
    metrics.answered(name, request.method ?? '', response.statusCode, ms);
    log.debug(
      { request_id: exchange.requestId, route: name, status: response.statusCode, ms },
      'answered',
    );
  }
}

function wishOf(request: IncomingMessage): ReturnType<typeof socketWish> {
  const { segments, query } = readTarget(request.url ?? '');
  const inApi = segments !== undefined && baseSegments.every((part, i) => segments[i] === part);
  return inApi ? socketWish(request, segments.slice(baseSegments.length), query) : undefined;
}

/** Bytes that are no request: answered in the same shape as everything else, then closed. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // Everything was said, and the connection is about to end.
  if (!socket.writable) return;
  // The answer under way ends the connection, as its caller asked for.
  if (error.code === 'HPE_CLOSED_CONNECTION') return;
  if (error.code === 'HPE_HEADER_OVERFLOW') endInTurn(socket, 'headers_too_large');
  else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') endInTurn(socket, 'request_timeout');
  else endInTurn(socket, 'request_malformed');
}

type Unreadable = Parameters<typeof endWith>[1];

/** After the answers that are still owed, so that none is taken for another's. */
function endInTurn(socket: Socket, error: Unreadable): void {
  lineOf(socket).breakOff(() => endWith(socket, error));
}

function endWith(
  socket: Socket,
  error: 'headers_too_large' | 'request_timeout' | 'request_malformed',
): void {
  const refusal = new Refusal(error, { limit: sizeInWords(headerBytes) });
  const requestId = newRequestId();
  const body = JSON.stringify({ ...refusal.body(), request_id: requestId });
  socket.write(
    `HTTP/1.1 ${refusal.status} ${refusal.status === 400 ? 'Bad Request' : 'Refused'}\r\n` +
      'Content-Type: application/json; charset=utf-8\r\n' +
      `${requestIdHeader}: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  socket.destroySoon();
}
