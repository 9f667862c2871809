// The host's private API: HTTP on a unix socket, for the control plane that holds the token.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { chmod, rm } from 'node:fs/promises';
import { timingSafeEqual } from 'node:crypto';
import {
  besideCommand,
  hostCommand,
  hostDelivery,
  type HostEventPage,
  type HostReport,
} from '@cubicle/contract/host/api.ts';
import type { Duplex } from 'node:stream';
import type { BuildsRequest } from './builds/builds-api.ts';
import type { Context } from './engine/engine.ts';
import type { JournalRequest } from './events/events.ts';
import { refuse, type Sockets } from './sockets/sockets.ts';
import type { Computers } from './computers.ts';

export interface ApiParts {
  readonly token: string;
  readonly computers: Computers;
  readonly host: () => Promise<HostReport['host']>;
  /** A page of a computer's signals as JSON; nothing when it is not here. */
  readonly signals: (computer: string, since: string, limit: number) => string | undefined;
  /** A page of what happened to all computers. */
  readonly events: (request: JournalRequest, signal: AbortSignal) => Promise<HostEventPage>;
  /** Calls into a guest; false when the path is none of theirs. */
  readonly guest: (call: GuestRequest) => Promise<boolean>;
  readonly builds: (call: BuildsRequest) => Promise<void>;
  readonly sockets: Sockets;
  readonly log: (problem: unknown) => void;
}

export interface GuestRequest {
  readonly context: Context;
  readonly computer: string;
  /** The segments after the computer's id. */
  readonly rest: readonly string[];
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A command's description is small; a command to execute may have 4 MiB. */
const mostBody = 8 * 1024 * 1024;

export class HostApi {
  readonly #parts: ApiParts;
  readonly #server: Server;

  constructor(parts: ApiParts) {
    this.#parts = parts;
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      void this.#answer(request, response).catch((error: unknown) => {
        if (!(error instanceof Error && error.name === 'AbortError')) this.#parts.log(error);
        if (response.headersSent) response.destroy();
        else sendJson(response, 500, { error: 'the host failed' });
      });
    };
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 60_000 }, answer);
    // An upload waits until it is wanted.
    this.#server.on('checkContinue', answer);
    this.#server.on('upgrade', (request, socket, head) => {
      void this.#upgrade(request, socket, head).catch((error: unknown) => {
        this.#parts.log(error);
        socket.destroy();
      });
    });
  }

  async listen(socketPath: string): Promise<void> {
    await rm(socketPath, { force: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject).listen(socketPath, resolve);
    await promise;
    await chmod(socketPath, 0o600);
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#knows(request.headers.authorization)) {
      return sendJson(response, 401, { error: 'not the control plane' });
    }
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort();
    });
    const context = { signal: gone.signal };
    const url = new URL(request.url ?? '/', 'http://host');
    const [, first, computer = '', ...rest] = url.pathname.split('/');
    if (first === 'report') {
      const [host, computers] = await Promise.all([
        this.#parts.host(),
        this.#parts.computers.list(context),
      ]);
      return sendJson(response, 200, { host, computers });
    }
    if (first === 'events') {
      const { searchParams: query } = url;
      const asked = {
        after: query.get('after') ?? undefined,
        waitMs: Number(query.get('wait_ms')),
        most: Number(query.get('limit')),
      };
      return sendJson(response, 200, await this.#parts.events(asked, context.signal));
    }
    if (first === 'builds' && rest.length === 0) {
      const query = url.searchParams;
      return this.#parts.builds({ context, id: computer, query, request, response });
    }
    if (first !== 'computers') return sendJson(response, 404, { error: 'no such path' });
    if (rest.length === 0) {
      const found = await this.#parts.computers.get(context, computer);
      return sendJson(response, found === undefined ? 404 : 200, found ?? { error: 'absent' });
    }
    if (rest[0] === 'commands') {
      const sent = await readJson(request);
      const command = hostCommand.parse(sent);
      const { delivery } = besideCommand.parse(sent);
      // A command goes on when its caller goes away: it is recorded there and asked for again.
      const whole = { signal: AbortSignal.timeout(600_000) };
      return sendJson(
        response,
        200,
        await this.#parts.computers.carryOut(whole, computer, command, delivery),
      );
    }
    if (rest[0] === 'secrets') {
      const delivery = hostDelivery.parse(await readJson(request));
      const delivered = await this.#parts.computers.deliver(context, computer, delivery);
      return sendJson(response, 200, { delivered });
    }
    if (rest[0] === 'signals') {
      const { searchParams: query } = url;
      const page = this.#parts.signals(
        computer,
        query.get('since') ?? '',
        Number(query.get('limit')),
      );
      return page === undefined
        ? sendJson(response, 404, { error: 'absent' })
        : sendText(response, 200, page);
    }
    const call = { context, computer, rest, query: url.searchParams, request, response };
    if (!(await this.#parts.guest(call))) sendJson(response, 404, { error: 'no such path' });
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (!this.#knows(request.headers.authorization)) {
      return refuse(socket, 401, { error: 'not the control plane' });
    }
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://host');
    const [, first, computer = '', what, kind = ''] = pathname.split('/');
    if (first !== 'computers' || what !== 'sockets') {
      return refuse(socket, 404, { error: 'no such path' });
    }
    await this.#parts.sockets.upgrade({ computer, kind, query, request, socket, head });
  }

  #knows(authorization: string | undefined): boolean {
    const given = Buffer.from(authorization ?? '');
    const right = Buffer.from(`Bearer ${this.#parts.token}`);
    return given.length === right.length && timingSafeEqual(given, right);
  }
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, JSON.stringify(value));
}

function sendText(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

/** What does not parse is not quoted, as the parser's own error would: there may be secrets in it. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = await readText(request);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('a request that is not JSON');
  }
}

export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBody) throw new Error('a request too large to read');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
