// Keeps records and hosts of one mind about what was built: what a family has too much of and nobody uses is
// given up, what is given up is removed from its host, and what a host lost is no longer promised.

import {
  forgetImages,
  hasSurplus,
  imagesOn,
  removeSurplus,
  trimBuilds,
  unwantedBuilds,
} from '../db/build-following.ts';
import { trimRequests } from '../db/build-requests.ts';
import { trimStreams } from '../db/build-streams.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Database } from '../db/database.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host } from '../hosts/host.ts';
import { Misses } from './misses.ts';

/** Nobody waits for it; asked again in the next round. */
const answerMs = 60_000;

export class BuildKeeper {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #misses = new Misses();

  constructor(database: Database, fleet: Fleet) {
    this.#database = database;
    this.#fleet = fleet;
  }

  async run(): Promise<void> {
    if (await hasSurplus(this.#database)) {
      await this.#database.transaction((tx) => removeSurplus(tx));
    }
    await Promise.all((await this.#fleet.hosts()).map((host) => this.#host(host)));
  }

  async trim(): Promise<void> {
    await trimBuilds(this.#database, limits.buildDays);
    await trimRequests(this.#database);
    await trimStreams(this.#database);
  }

  async #host(host: Host): Promise<void> {
    // Read before the host is asked: what is finished in between it has.
    const promised = await imagesOn(this.#database, host.id);
    const answer = await host.builds().catch(() => undefined);
    if (answer === undefined) return;
    const held = answer.builds.map(({ id }) => id);
    for (const id of held.length === 0 ? [] : await unwantedBuilds(this.#database, held)) {
      await host.removeBuild(id, answerMs).catch(() => {});
    }
    const there = new Set(held);
    const gone = promised.filter((id) => !there.has(id) && this.#misses.missed(id));
    for (const id of there) this.#misses.seen(id);
    if (gone.length > 0) await forgetImages(this.#database, gone);
  }
}
