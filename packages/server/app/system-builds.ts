// Images of the service's own templates that are built when somebody first wants them. They belong to no
// account, and whoever asks while one is being made waits for the same one.

import { Refusal } from '@cubicle/contract/errors.ts';
import * as store from '../db/builds.ts';
import { type Database, violated } from '../db/database.ts';
import type { ValidDocument } from '../documents/read.ts';
import type { BuildFollower } from './build-follower.ts';
import type { BuildOrders } from './build-orders.ts';
import { planOf } from './build-plan.ts';
import { builtDocuments } from './system-templates.ts';

export interface Preparation {
  readonly state: 'preparing' | 'copying' | 'failed';
  readonly error: string;
}

/** How long a failure is told before the build is tried again. */
const againMs = 60_000;

export class SystemBuilds {
  readonly #database: Database;
  readonly #orders: BuildOrders;
  readonly #follower: BuildFollower;

  constructor(database: Database, orders: BuildOrders, follower: BuildFollower) {
    this.#database = database;
    this.#orders = orders;
    this.#follower = follower;
  }

  /** Its image, or how far that is; a build is begun where there is neither. */
  async imageOf(reading: ValidDocument): Promise<store.LaunchRow | Preparation> {
    const { latest, image } = await store.makingOf(this.#database, null, reading.docDigest);
    return image ?? (await this.#prepare(reading, latest));
  }

  /** Builds anew what was made from an earlier image of its parent; until that is done it serves. */
  async renew(): Promise<void> {
    for (const reading of builtDocuments) {
      const { latest, image } = await store.makingOf(this.#database, null, reading.docDigest);
      if (image === undefined) continue;
      const candidates = await this.#orders.candidates(planOf(reading), []);
      const there = candidates.find(({ host }) => host.id === image.host_id);
      if (there !== undefined && there.key !== image.build_key) {
        await this.#prepare(reading, latest);
      }
    }
  }

  async #prepare(reading: ValidDocument, latest: store.Making['latest']): Promise<Preparation> {
    if (latest?.status === 'running') return { state: 'preparing', error: '' };
    const ended = latest?.status === 'failed' ? latest.finished_at : null;
    if (ended && Date.now() - ended.getTime() < againMs) {
      const error = 'The image could not be made; it is tried again.';
      return { state: 'failed', error };
    }
    await this.#begin(reading).catch((error: unknown) => {
      // Somebody else's build is in the way, or began this one; the next who asks finds out.
      const waits = error instanceof Refusal && error.error === 'build_contention';
      if (!waits && violated(error) !== 'builds_one_per_host') throw error;
    });
    return { state: 'preparing', error: '' };
  }

  async #begin(reading: ValidDocument): Promise<void> {
    const plan = planOf(reading);
    const candidates = await this.#orders.candidates(plan, []);
    const [free] = await this.#orders.free(candidates);
    if (free === undefined) return;
    const build = this.#orders.newBuild(plan, null, free);
    const row = await store.insertBuild(this.#database, build);
    const order = () => this.#orders.place(row, plan, [free], {});
    const placed = await this.#follower.ordering(row.id, order);
    if (placed === 'refused' || placed === 'away') await store.dropBuild(this.#database, row.id);
  }
}
