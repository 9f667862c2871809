// One stream of a build's events, as server-sent events. What is sent next is read when there is room for it:
// a slow reader gets fewer and newer states, and nothing is held for it.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { BuildRow } from '../db/builds.ts';
import type { Authority } from './authority.ts';
import { progressOf } from './build-record.ts';

export interface StreamTimes {
  /** How long it may be open at all. */
  readonly openMs: number;
  readonly keepAliveMs: number;
  /** The same for a reader that may be gone: two words tell. */
  readonly probeMs: number;
  /** How long a reader that reads nothing has for the last words. */
  readonly goodbyeMs: number;
}

export interface StreamParts {
  readonly authority: Authority;
  readonly buildId: string;
  readonly requestId: string;
  /** Aborted when the caller leaves. */
  readonly gone: AbortSignal;
  readonly read: () => Promise<BuildRow | undefined>;
  /** Throws the refusal that the authority would meet now. */
  readonly standing: () => Promise<void>;
  readonly closed: () => void;
  readonly times: StreamTimes;
}

/** So often in a row the store may be silent before the stream is given up. */
const mostUnsure = 3;

const sentences = {
  late: 'The stream was open for as long as one may be; open another, or poll the progress.',
  stopping: 'The service is stopping; open another stream, or poll the progress.',
  unsure: 'The stream could not go on; poll the progress.',
};

export class BuildStream implements AsyncIterable<Uint8Array> {
  readonly buildId: string;
  readonly #parts: StreamParts;
  readonly #cut = new AbortController();
  readonly #late: NodeJS.Timeout;
  readonly #events: AsyncGenerator<Uint8Array>;
  #wake: (() => void) | undefined;
  #woken = false;
  /** From the start: it may have gone since the request was admitted. */
  #doubted = true;
  #ending: keyof typeof sentences | undefined;
  #probing = false;
  #closed = false;

  constructor(parts: StreamParts) {
    this.buildId = parts.buildId;
    this.#parts = parts;
    this.#events = this.#tell();
    this.#late = setTimeout(() => this.#end('late'), parts.times.openMs).unref();
    parts.gone.addEventListener('abort', () => this.#close(), { once: true });
    if (parts.gone.aborted) this.#close();
  }

  /** Aborted when what is left to say was not read in time. */
  get cut(): AbortSignal {
    return this.#cut.signal;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Something moved. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  /** The reader may be gone. */
  probe(): void {
    this.#probing = true;
    this.wake();
  }

  /** The authority may be gone. */
  doubt(): void {
    this.#doubted = true;
    this.wake();
  }

  concerns(kind: string, id: string): boolean {
    const { accountId, userId, keyId } = this.#parts.authority;
    return id === { account: accountId, user: userId, key: keyId }[kind];
  }

  stop(): void {
    this.#end('stopping');
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => this.#events.next(),
      // Also of one that was never begun, as for HEAD.
      return: async () => {
        this.#close();
        return this.#events.return(undefined);
      },
    };
  }

  async *#tell(): AsyncGenerator<Uint8Array> {
    let sent = -1;
    let unsure = 0;
    try {
      while (!this.#closed) {
        this.#woken = false;
        if (this.#ending !== undefined) {
          yield this.#error(sentences[this.#ending]);
          return;
        }
        const look = await this.#look().catch((error: unknown) => error as Error);
        if (look instanceof Error && !(look instanceof Refusal && isFinal(look))) {
          unsure += 1;
          this.#doubted = true;
          if (unsure >= mostUnsure) this.#end('unsure');
        } else if (look instanceof Error) {
          const { message, status } = look;
          yield this.#error(message, status < 404 ? { status, reason: 'revoked' } : {});
          return;
        } else {
          unsure = 0;
          if (look.moves !== sent) yield event('progress', progressOf(look));
          sent = look.moves;
          if (look.status !== 'running') {
            yield event('done', progressOf(look));
            return;
          }
        }
        if (!(await this.#rest())) yield keepAlive;
      }
    } finally {
      this.#close();
      this.#cutSoon();
    }
  }

  /** The build as it is, for whom it still concerns. */
  async #look(): Promise<BuildRow> {
    if (this.#doubted) {
      this.#doubted = false;
      await this.#parts.standing();
    }
    const row = await this.#parts.read();
    if (row === undefined) throw new Refusal('build_unknown');
    return row;
  }

  /** Until there is something to look at; false when nothing was for so long that a word is due. */
  async #rest(): Promise<boolean> {
    if (this.#woken || this.#closed) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { keepAliveMs, probeMs } = this.#parts.times;
    const ms = this.#probing ? Math.min(probeMs, keepAliveMs) : keepAliveMs;
    const timer = setTimeout(() => resolve(false), ms);
    this.#wake = () => resolve(true);
    try {
      const woken = await promise;
      // Now and then, for news that never came.
      if (!woken) this.#doubted = true;
      return woken || this.#closed;
    } finally {
      clearTimeout(timer);
      this.#wake = undefined;
    }
  }

  #error(error: string, more: object = {}): Uint8Array {
    return event('error', { request_id: this.#parts.requestId, error, ...more });
  }

  #end(why: keyof typeof sentences): void {
    this.#ending ??= why;
    // It may stand still behind an earlier event that nobody reads.
    this.#cutSoon();
    this.wake();
  }

  #cutSoon(): void {
    setTimeout(() => this.#cut.abort(), this.#parts.times.goodbyeMs).unref();
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#late);
    this.wake();
    this.#parts.closed();
  }
}

/** The authority or the build is gone; anything else may be over in a moment. */
function isFinal({ status }: Refusal): boolean {
  return status === 401 || status === 403 || status === 404;
}

const keepAlive = Buffer.from(': keepalive\n\n');

/** JSON has no line end of its own, so it is one line of data. */
function event(name: string, data: object): Uint8Array {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
