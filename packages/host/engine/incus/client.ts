/** Speaks Incus's REST API over its unix socket or over TLS, and waits for its operations. */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Context, EngineError } from '../engine.ts';
import type { Endpoint } from './endpoint.ts';
import { Away, failureOf } from './failure.ts';

/** The longest that one call or one operation may take: the largest image unpacks in seconds. */
const longestMs = 300_000;

const lost = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN', 'ETIMEDOUT']);

interface Reply {
  readonly type: 'sync' | 'async' | 'error';
  readonly operation?: string;
  readonly error?: string;
  readonly error_code?: number;
  readonly metadata?: unknown;
}

interface Operation {
  readonly status_code: number;
  readonly err: string;
  readonly metadata?: Record<string, unknown> | null;
}

export type Method = 'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE';

/** A body that is sent as it comes, such as the files of an image. */
export interface Upload {
  readonly type: string;
  readonly length: number;
  readonly open: () => Readable;
}

export class IncusClient {
  readonly #endpoint: Endpoint;
  readonly #agent: http.Agent;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
    // Kept connections save a socket per call; no bound, as most of them only wait for an operation.
    this.#agent =
      endpoint.kind === 'unix'
        ? new http.Agent({ keepAlive: true })
        : new https.Agent({ keepAlive: true, ...endpoint.tls });
  }

  /** The answer's metadata; `absent` when there is no such thing. */
  async get<Answer>(context: Context, path: string): Promise<Answer> {
    const reply = await this.#ask(context, 'GET', path);
    return reply.metadata as Answer;
  }

  async find<Answer>(context: Context, path: string): Promise<Answer | undefined> {
    try {
      return await this.get<Answer>(context, path);
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'absent') return undefined;
      throw error;
    }
  }

  /** Asks for a change and returns when it is done, with what the operation tells of itself. */
  async change(
    context: Context,
    method: Method,
    path: string,
    body?: object | Upload,
  ): Promise<Record<string, unknown>> {
    const reply = await this.#ask(context, method, path, body);
    if (reply.type !== 'async' || reply.operation === undefined) return {};
    return await this.finish(context, reply.operation);
  }

  /** What is gone already is as good as removed. */
  async remove(context: Context, path: string): Promise<void> {
    try {
      await this.change(context, 'DELETE', path);
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== 'absent') throw error;
    }
  }

  /** Waits until an operation has ended, whoever began it. */
  async finish(context: Context, operation: string): Promise<Record<string, unknown>> {
    let reply: Reply;
    try {
      reply = await this.#ask(context, 'GET', `${operation}/wait`);
    } catch (error) {
      // Operations live in the memory of the daemon that began them.
      if (!(error instanceof EngineError) || error.kind !== 'absent') throw error;
      throw new Away('Incus restarted in the middle of an operation', error);
    }
    const { status_code, err, metadata } = reply.metadata as Operation;
    if (status_code >= 400) throw failureOf(status_code, err);
    return metadata ?? {};
  }

  close(): void {
    this.#agent.destroy();
  }

  async #ask(
    context: Context,
    method: Method,
    path: string,
    body?: object | Upload,
  ): Promise<Reply> {
    context.signal.throwIfAborted();
    const deadline = AbortSignal.timeout(longestMs);
    const signal = AbortSignal.any([context.signal, deadline]);
    try {
      return await this.#exchange(signal, method, path, body);
    } catch (error) {
      context.signal.throwIfAborted();
      if (deadline.aborted) {
        throw new EngineError('failed', `Incus did not answer ${method} ${path} in time`, error);
      }
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      if (lost.has(code)) throw new Away(`Incus is away (${code})`, error);
      throw error;
    }
  }

  async #exchange(
    signal: AbortSignal,
    method: Method,
    path: string,
    body?: object | Upload,
  ): Promise<Reply> {
    const json = body === undefined || isUpload(body) ? undefined : JSON.stringify(body);
    const request = this.#open(signal, method, path, {
      ...(json === undefined
        ? {}
        : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) }),
      ...(isUpload(body) ? { 'Content-Type': body.type, 'Content-Length': body.length } : {}),
    });
    const answered = once(request, 'response', { signal });
    if (isUpload(body)) {
      // An early answer is a refusal and says more than the broken pipe that follows it.
      pipeline(body.open(), request, { signal }).catch((error: unknown) =>
        request.destroy(error as Error),
      );
    } else {
      request.end(json);
    }
    const [response] = (await answered) as [http.IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    return judge(response.statusCode ?? 0, text);
  }

  #open(
    signal: AbortSignal,
    method: Method,
    path: string,
    headers: http.OutgoingHttpHeaders,
  ): http.ClientRequest {
    const options = { agent: this.#agent, method, signal, headers };
    return this.#endpoint.kind === 'unix'
      ? http.request({ ...options, socketPath: this.#endpoint.path, path })
      : https.request(new URL(path, this.#endpoint.url), options);
  }
}

function isUpload(body: object | undefined): body is Upload {
  return body !== undefined && 'open' in body && typeof body.open === 'function';
}

function judge(status: number, text: string): Reply {
  let reply: Reply;
  try {
    reply = JSON.parse(text) as Reply;
  } catch (cause) {
    throw new Away(`Incus answered ${status} without a word`, cause);
  }
  if (reply.type === 'error') throw failureOf(reply.error_code ?? status, reply.error ?? '');
  return reply;
}
