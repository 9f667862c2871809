// The socket where one guest's agent connects. Everything in the guest that reaches it may try, so
// what it costs the host is bounded: connections that have not greeted, their time, and tries a second.

import { randomBytes } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import { ProtocolError } from '@cubicle/contract/guest/protocol-error.ts';
import { AgentLink, type LinkEars } from './agent-link.ts';
import { Bucket } from './bucket.ts';

export interface DoorOptions {
  readonly now: () => number;
  /** A connection that has not greeted by then is put down. */
  readonly helloMs: number;
  /** How long the door stays shut after too many tries. */
  readonly restMs: number;
}

/** An agent alone needs one, and one more while it comes back. */
const mostUngreeted = 4;
/** An agent that loses its host tries twice a second. */
const tries = { atOnce: 32, perSecond: 8 };
/**
 * An honest agent tells the end of each command and what happens to windows, which is not more than this.
 * One budget for all connections: another one does not refill it.
 */
const events = { atOnce: 1_024, perSecond: 256 };
/** The kernel's sockaddr_un, without its NUL. */
const longestPath = 107;

export class Door {
  readonly #path: string;
  /** Beside the folder, not in it. */
  readonly #draft: string;
  readonly #ears: LinkEars;
  readonly #options: DoorOptions;
  readonly #tries: Bucket;
  readonly #events: Bucket;
  readonly #links = new Set<AgentLink>();
  readonly #ungreeted = new Map<AgentLink, NodeJS.Timeout>();
  #server: Server | undefined;
  #resting: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(folder: string, ears: LinkEars, options: DoorOptions) {
    this.#path = join(folder, 'agent.sock');
    this.#draft = `${resolve(folder)}.${randomBytes(4).toString('hex')}`;
    this.#ears = ears;
    this.#options = options;
    this.#tries = new Bucket(tries.atOnce, tries.perSecond, options.now);
    this.#events = new Bucket(events.atOnce, events.perSecond, options.now);
    if (Buffer.byteLength(this.#draft) > longestPath) {
      throw new Error(`a socket's path has at most ${longestPath} bytes: ${this.#draft}`);
    }
  }

  async open(): Promise<void> {
    const server = createServer((socket) => this.#enter(socket));
    const listening = Promise.withResolvers<void>();
    server.once('error', listening.reject);
    // Made where no guest sees it and then moved: its mode is set by name, and a guest that could put a
    // link in its place would set the mode of any file of the host's. The guest's root is nobody out
    // here, and connecting takes the right to write.
    server.listen({ path: this.#draft, readableAll: true, writableAll: true }, listening.resolve);
    await listening.promise;
    // Also over what a daemon that was killed left behind.
    await rename(this.#draft, this.#path);
    // Out of file descriptors, for example: the next connection may succeed.
    server.on('error', () => {});
    this.#server = server;
    if (this.#closed) await this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#resting);
    for (const link of this.#links) link.end(new ChannelFailure('lost', 'the host let go'));
    await this.#shut();
  }

  #enter(socket: Socket): void {
    if (!this.#tries.take()) {
      socket.destroy();
      return this.#rest();
    }
    if (this.#ungreeted.size >= mostUngreeted) {
      socket.destroy();
      return;
    }
    const link: AgentLink = new AgentLink(
      socket,
      {
        hello: (greeting, hello) => {
          this.#greeted(greeting);
          this.#ears.hello(greeting, hello);
        },
        event: (telling, event) => this.#ears.event(telling, event),
        closed: (closing, cause) => {
          this.#greeted(closing);
          this.#links.delete(closing);
          this.#ears.closed(closing, cause);
        },
      },
      this.#events,
    );
    const late = () => link.end(new ProtocolError('late', 'no greeting in time'));
    this.#links.add(link);
    this.#ungreeted.set(link, setTimeout(late, this.#options.helloMs));
  }

  #greeted(link: AgentLink): void {
    clearTimeout(this.#ungreeted.get(link));
    this.#ungreeted.delete(link);
  }

  /** With nothing to connect to, further tries cost the host nothing. Links that greeted stay. */
  #rest(): void {
    if (this.#resting !== undefined || this.#closed) return;
    void this.#shut();
    this.#resting = setTimeout(() => {
      this.#resting = undefined;
      if (!this.#closed) this.open().catch(() => this.#rest());
    }, this.#options.restMs);
  }

  /** Does not wait for connections to end; that is the links' part. */
  async #shut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.close();
    await rm(this.#path, { force: true });
  }
}
