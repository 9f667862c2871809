// Follows running builds: asks their hosts how they are, and keeps that in the records. Each is followed by
// one process; when it dies another one goes on, for the build itself is the host's.

import { setTimeout as pause } from 'node:timers/promises';
import { limits } from '@cubicle/contract/limits.ts';
import {
  advanceBuild,
  endBuild,
  findRunning,
  leasedBuilds,
  letGoOfBuilds,
} from '../db/build-following.ts';
import type { BuildRow } from '../db/builds.ts';
import type { Database } from '../db/database.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host } from '../hosts/host.ts';
import type { Placed } from './build-orders.ts';
import { errorText, lostOf, toldOf } from './build-record.ts';
import { Leases } from './leases.ts';

/** How long a host is asked to wait for news. */
const waitMs = 10_000;
/** The records are written at most so often for one build. */
const writeMs = 250;
/** Before a host that does not answer is asked again. */
const againMs = 1_000;

const lostNote = 'The host no longer knows of the build: it was restarted while it was building.';
const unbegunNote = 'The host never began with the build.';

export class BuildFollower {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #log: (problem: unknown) => void;
  readonly #ending = new AbortController();
  /** Those that are followed, and those that are still being ordered, of which no host knows yet. */
  readonly #leases: Leases<BuildRow>;
  readonly #following = new Map<string, Promise<void>>();

  constructor(database: Database, fleet: Fleet, log: (problem: unknown) => void) {
    this.#database = database;
    this.#fleet = fleet;
    this.#log = log;
    this.#leases = new Leases(database, leasedBuilds);
  }

  /**
   * Nobody else takes it up while `order` is on the way; then it is followed, unless no host has it. What went
   * wrong on the way is found out by following.
   */
  async ordering(id: string, order: () => Promise<Placed>): Promise<Placed> {
    this.#leases.hold(id);
    try {
      const placed = await order();
      if (placed === 'accepted' || placed === 'unknown') this.follow(id);
      else this.#leases.letGo(id);
      return placed;
    } catch (error) {
      this.follow(id);
      throw error;
    }
  }

  follow(id: string): void {
    this.#leases.hold(id);
    if (this.#following.has(id) || this.#ending.signal.aborted) return;
    const following = this.#follow(id).finally(() => {
      this.#following.delete(id);
      this.#leases.letGo(id);
    });
    this.#following.set(id, following);
  }

  async renew(): Promise<void> {
    await this.#leases.renew();
  }

  async takeUp(): Promise<void> {
    for (const { id } of await this.#leases.takeUp()) this.follow(id);
  }

  /** Builds go on; another process may follow them at once. */
  async stop(): Promise<void> {
    const { held } = this.#leases;
    this.#ending.abort();
    await Promise.all(this.#following.values());
    if (held.length > 0) await letGoOfBuilds(this.#database, held).catch(this.#log);
  }

  async #follow(id: string): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      try {
        // Read anew each time: somebody else may have gone on with it.
        const row = await findRunning(this.#database, id);
        if (row === undefined) return;
        await this.#ask(row);
        await this.#pause(writeMs);
      } catch {
        await this.#pause(againMs);
      }
    }
  }

  /** Until it has moved, or for a while. */
  async #ask(row: BuildRow): Promise<void> {
    const { id, moves } = row;
    const host: Host = await this.#fleet.host(row.host_id);
    const wait = { after: moves, waitMs, signal: this.#ending.signal };
    const progress = await host.build(id, wait);
    if (progress === undefined) {
      const why = row.step === 0 && row.phase === 'planning' ? unbegunNote : lostNote;
      await this.#end(row, lostOf(row, why), { status: 'failed', error: why });
      return;
    }
    if (progress.status === 'running') {
      if (progress.moves > moves) await advanceBuild(this.#database, id, toldOf(row, progress));
    } else {
      const { status } = progress;
      const error = status === 'failed' ? errorText(progress) : null;
      await this.#end(row, toldOf(row, progress), { status, error });
    }
  }

  async #end(
    { id }: BuildRow,
    told: ReturnType<typeof toldOf>,
    ended: { status: 'succeeded' | 'failed'; error: string | null },
  ): Promise<void> {
    const keep = limits.buildsKept;
    await this.#database.transaction((tx) => endBuild(tx, id, told, { ...ended, keep }));
  }

  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#ending.signal, ref: false }).catch(() => {});
  }
}
