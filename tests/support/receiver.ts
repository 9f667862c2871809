// A receiver of webhooks as customers have them: HTTPS on loopback, which remembers what it was sent.

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Authority, type Certificate } from './certificate.ts';

export interface Received {
  readonly id: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly at: number;
}

export type Answering = (
  request: IncomingMessage,
  response: ServerResponse,
  received: Received,
) => void;

/** Trusted by services that are told to: see `settings`. */
export const authority = new Authority();

/** A status, with headers. */
export function status(code: number, headers: Record<string, string> = {}): Answering {
  return (_request, response) => void response.writeHead(code, headers).end('heard');
}

export class Receiver {
  readonly received: Received[] = [];
  /** At once, and the most there were. */
  readonly open = { now: 0, most: 0 };
  connections = 0;
  answer: Answering;
  readonly #server: Server;

  private constructor(server: Server, answer: Answering) {
    this.#server = server;
    this.answer = answer;
  }

  static async start(
    answer: Answering = status(200),
    certificate: Certificate = authority.issue({ names: ['127.0.0.1', 'receiver.example'] }),
  ): Promise<Receiver> {
    // A connection is kept for as long as a sender does.
    const server = createServer({ ...certificate, keepAliveTimeout: 60_000 });
    const receiver = new Receiver(server, answer);
    server.on('request', (request, response) => receiver.#take(request, response));
    server.on('secureConnection', () => (receiver.connections += 1));
    // A client that ends a handshake is what some tests are about.
    server.on('tlsClientError', () => {});
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}/hook`;
  }

  /** Ids of deliveries in the order of their arrival, repeats included. */
  get ids(): string[] {
    return this.received.map(({ id }) => id);
  }

  // eslint-disable-next-line typescript/no-explicit-any -- tests look into events of any shape
  events(secret: string): any[] {
    return this.received.map((received) => verifiedThen(secret, received));
  }

  closeConnections(): void {
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    this.open.now += 1;
    this.open.most = Math.max(this.open.most, this.open.now);
    response.once('close', () => (this.open.now -= 1));
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const id = String(request.headers['webhook-id']);
      const received = { id, headers: request.headers, body, at: Date.now() };
      this.received.push(received);
      this.answer(request, response, received);
    });
  }
}

/** The event, as the public library for receivers reads it; throws unless the signature holds. */
export function verified(secret: string, { headers, body }: Received): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

/** Judged at the sender's own time: a test may have put that forward. */
export function verifiedThen(secret: string, received: Received): unknown {
  const now = Date.now;
  Date.now = () => Number(received.headers['webhook-timestamp']) * 1_000;
  try {
    return verified(secret, received);
  } finally {
    Date.now = now;
  }
}
