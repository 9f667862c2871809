// One host as the control plane reaches it. A host that does not answer is away, and the difference
// between "never asked" and "asked, not heard" is kept: only the second leaves an outcome unknown.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { z } from 'zod';
import {
  hostComputer,
  type HostDelivery,
  hostDelivered,
  type HostCommand,
  type HostComputer,
  type HostEventPage,
  hostEventPage,
  type HostOutcome,
  hostOutcome,
  hostPaths,
  type HostReport,
  hostReport,
} from '@cubicle/contract/host/api.ts';
import {
  type HostBuildAnswer,
  hostBuildAnswer,
  type HostBuildOrder,
  hostBuildPaths,
  type HostBuildProgress,
  hostBuildProgress,
  type HostBuilds,
  hostBuilds,
} from '@cubicle/contract/host/builds.ts';

/** The host could not be reached, so nothing was asked of it. */
export class HostAway extends Error {}
/** The host was asked and did not answer: the outcome is unknown. */
class HostSilent extends Error {}

export interface HostAddress {
  readonly id: string;
  readonly address: string;
  /** Throws when it cannot be read: the host is then away. */
  readonly token: () => string;
}

export interface HostRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  /** What is streamed is sent once the host has said that it wants it. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** An upgraded connection to a host. */
export interface HostStream {
  readonly headers: IncomingMessage['headers'];
  readonly socket: Duplex;
  readonly head: Buffer;
}

export class Host {
  readonly id: string;
  readonly #address: HostAddress;

  constructor(address: HostAddress) {
    this.id = address.id;
    this.#address = address;
  }

  async report(timeoutMs = 5_000): Promise<HostReport> {
    return this.#json(hostReport, { method: 'GET', path: hostPaths.report, timeoutMs });
  }

  /** What happened to its computers after the cursor; when nothing did, waits for it a while. */
  async events(
    after: string | undefined,
    { waitMs, most, signal }: { waitMs: number; most: number; signal: AbortSignal },
  ): Promise<HostEventPage> {
    const query = new URLSearchParams({ wait_ms: String(waitMs), limit: String(most) });
    if (after !== undefined) query.set('after', after);
    const path = `${hostPaths.events}?${query.toString()}`;
    return this.#json(hostEventPage, { method: 'GET', path, timeoutMs: waitMs + 10_000, signal });
  }

  /** Undefined when the host has no such computer. */
  async computer(id: string, timeoutMs = 5_000): Promise<HostComputer | undefined> {
    return this.#known(hostComputer, { method: 'GET', path: hostPaths.computer(id), timeoutMs });
  }

  /** `delivery`: what goes with a command and is no part of it. */
  async command(
    id: string,
    command: HostCommand,
    timeoutMs: number,
    delivery?: HostDelivery,
  ): Promise<HostOutcome> {
    return this.#json(hostOutcome, {
      method: 'POST',
      path: hostPaths.commands(id),
      body: JSON.stringify({ ...command, delivery }),
      timeoutMs,
    });
  }

  async orderBuild(id: string, order: HostBuildOrder, timeoutMs: number): Promise<HostBuildAnswer> {
    return this.#json(hostBuildAnswer, {
      method: 'PUT',
      path: hostBuildPaths.build(id),
      body: JSON.stringify(order),
      timeoutMs,
    });
  }

  /** How a build is; with `after` once it has moved on from there. Undefined when the host has none such. */
  async build(
    id: string,
    wait?: { after: number; waitMs: number; signal: AbortSignal },
  ): Promise<HostBuildProgress | undefined> {
    const query =
      wait === undefined
        ? ''
        : `?${new URLSearchParams({ after: String(wait.after), wait_ms: String(wait.waitMs) }).toString()}`;
    return this.#known(hostBuildProgress, {
      method: 'GET',
      path: hostBuildPaths.build(id) + query,
      timeoutMs: (wait?.waitMs ?? 0) + 10_000,
      ...(wait && { signal: wait.signal }),
    });
  }

  async builds(timeoutMs = 5_000): Promise<HostBuilds> {
    return this.#json(hostBuilds, { method: 'GET', path: hostBuildPaths.builds, timeoutMs });
  }

  async removeBuild(id: string, timeoutMs: number): Promise<void> {
    const response = await this.send({
      method: 'DELETE',
      path: hostBuildPaths.build(id),
      timeoutMs,
    });
    response.resume();
  }

  /** Secrets for a computer that runs. Whether it has them now. */
  async deliver(id: string, delivery: HostDelivery, timeoutMs = 15_000): Promise<boolean> {
    const body = JSON.stringify(delivery);
    const path = hostPaths.secrets(id);
    return (await this.#json(hostDelivered, { method: 'PUT', path, body, timeoutMs })).delivered;
  }

  #token(): string {
    try {
      return this.#address.token();
    } catch (cause) {
      throw new HostAway(`host ${this.id}: its token cannot be read`, { cause });
    }
  }

  /** Any call; the answer's body is the caller's to read. */
  send({ method, path, headers, body, timeoutMs, signal }: HostRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const token = this.#token();
      let connected = false;
      /** Why the content came to no end; the request then fails for another reason of its own. */
      let broken: unknown;
      const socketPath = this.#address.address.replace(/^unix:/, '');
      const request = httpRequest({
        socketPath,
        method,
        path,
        headers: {
          authorization: `Bearer ${token}`,
          ...headers,
          // Not a byte of an upload is taken before the host wants it: it can be sent again.
          ...(isStream(body) && { expect: '100-continue' }),
        },
        timeout: timeoutMs,
        ...(signal && { signal }),
      });
      request.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => (connected = true));
        else connected = true;
      });
      request.on('response', (response) => {
        // From here on the caller's own bounds hold.
        request.setTimeout(0);
        // One that was answered before it was sent whole leaves a connection that nobody else can use.
        response.once('close', () => {
          if (!request.writableFinished) request.destroy();
        });
        resolve(response);
      });
      request.on('timeout', () => request.destroy(new Error('the host did not answer in time')));
      request.on('error', (error) => {
        const problem = `host ${this.id}: ${error.message}`;
        const cause = broken ?? error;
        reject(connected ? new HostSilent(problem, { cause }) : new HostAway(problem, { cause }));
      });
      if (!isStream(body)) request.end(body);
      else {
        request.flushHeaders();
        request.once('continue', () => {
          const content = noticing(body, (error) => (broken = error));
          pipeline(content, request).catch((error: Error) => request.destroy(error));
        });
      }
    });
  }

  /** A WebSocket of the host's, or its answer where it refused; the body is the caller's to read. */
  upgrade({
    path,
    headers,
    timeoutMs,
    signal,
  }: Omit<HostRequest, 'method' | 'body'>): Promise<HostStream | IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        socketPath: this.#address.address.replace(/^unix:/, ''),
        path,
        headers: { authorization: `Bearer ${this.#token()}`, ...headers },
        // The connection becomes somebody's socket, so nobody else's request may be on it.
        agent: false,
        timeout: timeoutMs,
        ...(signal && { signal }),
      });
      request.on('upgrade', ({ headers: told }, socket, head) => {
        request.setTimeout(0);
        resolve({ headers: told, socket, head });
      });
      request.on('response', (response) => {
        request.setTimeout(0);
        resolve(response);
      });
      request.on('timeout', () => request.destroy(new Error('the host did not answer in time')));
      request.on('error', (cause) =>
        reject(new HostAway(`host ${this.id}: ${cause.message}`, { cause })),
      );
      request.end();
    });
  }

  async #json<Schema extends z.ZodType>(
    schema: Schema,
    request: HostRequest,
  ): Promise<z.infer<Schema>> {
    return this.#parsed(schema, await this.send(request));
  }

  /** Undefined for what the host does not know. */
  async #known<Schema extends z.ZodType>(
    schema: Schema,
    request: HostRequest,
  ): Promise<z.infer<Schema> | undefined> {
    const response = await this.send(request);
    if (response.statusCode !== 404) return this.#parsed(schema, response);
    response.resume();
    return undefined;
  }

  async #parsed<Schema extends z.ZodType>(
    schema: Schema,
    response: IncomingMessage,
  ): Promise<z.infer<Schema>> {
    try {
      const body = await readAll(response);
      if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}: ${body}`);
      return schema.parse(JSON.parse(body));
    } catch (cause) {
      throw new HostSilent(`host ${this.id} gave no usable answer`, { cause });
    }
  }
}

async function* noticing(
  body: AsyncIterable<Uint8Array>,
  notice: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    notice(error);
    throw error;
  }
}

function isStream(body: HostRequest['body']): body is AsyncIterable<Uint8Array> {
  return body !== undefined && typeof body !== 'string';
}

/** Reports of a thousand computers have some hundred kilobytes. */
const mostText = 16 * 1024 * 1024;

/** The body as text, up to a bound. */
export async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostText) throw new Error('an answer too large to read');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
