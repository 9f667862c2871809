// A WebSocket of a computer as a client holds it: what was said is kept until somebody asks for it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach } from 'node:test';
import { WebSocket } from 'ws';
import { unhung, until } from '../support/until.ts';

export interface Refused {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** What the frames of events and terminals have between them. */
export interface Frame {
  readonly type: string;
  readonly code?: number;
  readonly reason?: string;
  readonly computer?: string;
  readonly cursor?: string;
  readonly seq?: number;
  readonly ready?: boolean;
  readonly source?: string;
  readonly events?: readonly string[];
  readonly windows?: readonly object[];
  readonly watching?: readonly { readonly path: string; readonly armed: boolean }[];
  readonly data?: Readonly<Record<string, unknown>>;
}

export class ClientSocket {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  bytes = '';
  closed: number | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.bytes += (data as Buffer).toString('utf8');
      else this.frames.push(JSON.parse((data as Buffer).toString('utf8')));
    });
    socket.on('close', (code) => (this.closed = code));
    socket.on('error', () => {});
  }

  static async open(url: string): Promise<ClientSocket> {
    const opened = await ClientSocket.attempt(url);
    assert.ok(opened instanceof ClientSocket, JSON.stringify(opened));
    return opened;
  }

  /** What an upgrade that is refused is answered with. */
  static async attempt(url: string): Promise<ClientSocket | Refused> {
    const socket = new WebSocket(url);
    const client = new ClientSocket(socket);
    const refused = once(socket, 'unexpected-response').then(async ([, response]) => {
      const chunks: Buffer[] = await Array.fromAsync(response as AsyncIterable<Buffer>);
      const text = Buffer.concat(chunks).toString('utf8');
      return { status: response.statusCode as number, body: JSON.parse(text) };
    });
    refused.catch(() => {});
    const opened = once(socket, 'open').then(() => client);
    opened.catch(() => {});
    return unhung('the upgrade', Promise.race([opened, refused]));
  }

  /** The first frame for which this holds, from now or before. */
  async frame(what: string, holds: (frame: Frame) => boolean): Promise<Frame> {
    return until(what, () => this.frames.find(holds));
  }

  async shows(text: string): Promise<void> {
    await until(`it shows ${JSON.stringify(text)}`, () => this.bytes.includes(text));
  }

  async ended(): Promise<number> {
    return until('the socket is closed', () => this.closed);
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.ended();
  }
}

/** Sockets of a suite, closed when their test is over. */
export class SuiteSockets {
  readonly #open: ClientSocket[] = [];

  constructor() {
    afterEach(async () => {
      for (const socket of this.#open.splice(0)) await socket.close();
    });
  }

  async open(address: string): Promise<ClientSocket> {
    return this.#kept(await ClientSocket.open(address));
  }

  /** As soon as it opens again, for a host that was killed. */
  async reopen(address: () => Promise<string>): Promise<ClientSocket> {
    const again = await until('it opens again', async () => {
      const attempt = await ClientSocket.attempt(await address());
      return attempt instanceof ClientSocket && attempt;
    });
    return this.#kept(again);
  }

  #kept(socket: ClientSocket): ClientSocket {
    this.#open.push(socket);
    return socket;
  }
}
