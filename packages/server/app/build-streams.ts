// Streams of builds' events: who holds one, in this process and in all, and what wakes them (Part 6.3).

import { randomBytes } from 'node:crypto';
import { Refusal } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { enterStream, leaveStream, renewStreams } from '../db/build-streams.ts';
import { findBuild } from '../db/builds.ts';
import type { Database } from '../db/database.ts';
import type { Authority, Gatekeeper } from './authority.ts';
import { BuildStream, type StreamTimes } from './build-stream.ts';

/** A stream of a process that died counts for so long. */
const holdS = 30;
export const renewStreamsMs = 10_000;
/** What a ninth is told to wait: as long as clients wait between two polls. */
const pollS = '5';

const usualTimes: StreamTimes = {
  openMs: limits.buildStreamMs,
  keepAliveMs: limits.buildKeepAliveMs,
  probeMs: 500,
  goodbyeMs: 10_000,
};

export interface StreamsParts {
  readonly database: Database;
  readonly gatekeeper: Pick<Gatekeeper, 'stands'>;
  readonly times?: Partial<StreamTimes> | undefined;
}

export class BuildStreams {
  readonly #parts: StreamsParts;
  readonly #open = new Map<string, BuildStream>();
  #stopped = false;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /** Counted from here on, until it is closed or `gone` aborts. */
  async open(
    authority: Authority,
    buildId: string,
    caller: { requestId: string; gone: AbortSignal },
  ): Promise<BuildStream> {
    const { database, gatekeeper, times } = this.#parts;
    if (this.#stopped) throw new Refusal('not_ready');
    const { accountId } = authority;
    const id = randomBytes(8).toString('hex');
    const most = limits.buildStreams;
    if (!(await enterStream(database, { accountId, id, most, holdS }))) {
      throw new Refusal('build_streams_limit', { limit: most }, {}, { 'Retry-After': pollS });
    }
    const stream = new BuildStream({
      authority,
      buildId,
      ...caller,
      read: () => findBuild(database, accountId, buildId),
      standing: () => gatekeeper.stands(authority),
      closed: () => {
        this.#open.delete(id);
        void leaveStream(database, id).catch(() => {});
      },
      times: { ...usualTimes, ...times },
    });
    // The caller may have left before there was anything to leave.
    if (!stream.closed) this.#open.set(id, stream);
    if (this.#stopped) stream.stop();
    return stream;
  }

  /** A build moved. */
  moved(buildId: string): void {
    for (const stream of this.#open.values()) if (stream.buildId === buildId) stream.wake();
  }

  /** What the database announces: `key`, `user`, `account`. */
  changed(kind: string, id: string): void {
    for (const stream of this.#open.values()) if (stream.concerns(kind, id)) stream.doubt();
  }

  /** Something may have been missed. */
  missed(): void {
    for (const stream of this.#open.values()) stream.doubt();
  }

  async renew(): Promise<void> {
    if (this.#open.size > 0)
      await renewStreams(this.#parts.database, [...this.#open.keys()], holdS);
  }

  /** The callers are told, and nobody new is let in. */
  stop(): void {
    this.#stopped = true;
    for (const stream of this.#open.values()) stream.stop();
  }
}
