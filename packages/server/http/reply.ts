// Writes an answer: exact headers, a body or none, and a connection left in a known state.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Meter } from '../app/budget.ts';
import type { Line } from './line.ts';
import { Reply } from '../routes/reply.ts';
import { requestIdHeader } from './request-id.ts';

/** What is known of a request while it is answered. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly line: Line;
  readonly requestId: string;
  /** The query string as it came. */
  readonly query: string;
  /** Set once the budget was charged; its absence keeps the RateLimit headers away (Part 8). */
  meter: Meter | undefined;
}

export type Headers = Record<string, string | number>;

export function sendJson(
  exchange: Exchange,
  status: number,
  value: unknown,
  headers: Headers = {},
): void {
  const { meter } = exchange;
  send(exchange, status, JSON.stringify(value), {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    [requestIdHeader]: exchange.requestId,
    ...(meter === undefined ? undefined : meterHeaders(meter)),
    ...headers,
  });
}

/** A handler's answer: a value under the route's own status, or a Reply that says more. */
export async function sendAnswer(
  exchange: Exchange,
  status: number,
  answer: unknown,
): Promise<void> {
  if (!(answer instanceof Reply)) {
    sendJson(exchange, status, answer);
    return;
  }
  const { value, bytes, cut, headers = {}, status: own = status } = answer.parts;
  if (bytes === undefined) sendJson(exchange, own, value, headers);
  else await sendBytes(exchange, own, bytes, headers, cut);
}

/** Streams; a source that fails half way cuts the connection, so that nobody takes a part for the whole. */
async function sendBytes(
  exchange: Exchange,
  status: number,
  bytes: AsyncIterable<Uint8Array>,
  headers: Headers,
  cut: AbortSignal | undefined,
): Promise<void> {
  const { request, response, requestId, meter } = exchange;
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  // Node says so by itself wherever a body follows.
  const chunked = request.method === 'HEAD' && !names.includes('content-length');
  response.writeHead(status, {
    ...(chunked && { 'Transfer-Encoding': 'chunked' }),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    [requestIdHeader]: requestId,
    ...(meter === undefined ? undefined : meterHeaders(meter)),
    ...headers,
  });
  if (request.method === 'HEAD') {
    await bytes[Symbol.asyncIterator]().return?.();
    response.end();
    return;
  }
  const options = cut === undefined ? {} : { signal: cut };
  await pipeline(bytes, response, options).catch(() => response.destroy());
}

export function send(
  { request, response, line }: Exchange,
  status: number,
  body: string | Buffer | undefined,
  headers: Headers,
): void {
  if (response.headersSent || response.destroyed) return;
  if (body !== undefined) headers['Content-Length'] = Buffer.byteLength(body);
  // An upload is not read any further, so the connection cannot serve another request.
  const last = !request.complete && (line.broken || expectsBody(request));
  if (last) headers['Connection'] = 'close';
  response.writeHead(status, headers);
  line.ending ||= last || !response.shouldKeepAlive;
  response.end(request.method === 'HEAD' ? undefined : body);
}

function meterHeaders(meter: Meter): Headers {
  return {
    'RateLimit-Limit': meter.limit,
    'RateLimit-Remaining': meter.remaining,
    'RateLimit-Reset': meter.resetS,
    ...(meter.admitted ? undefined : { 'Retry-After': meter.retryAfterS }),
  };
}

function expectsBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  return headers['content-length'] !== undefined && headers['content-length'] !== '0';
}
