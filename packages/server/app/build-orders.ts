// Finds a host for a build and gives it the order.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostBuildOrder } from '@cubicle/contract/host/builds.ts';
import {
  type BuildRow,
  buildingHosts,
  type NewBuild,
  moveBuild,
  sameBuilds,
} from '../db/builds.ts';
import { type Database, violated } from '../db/database.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { type Host, HostAway } from '../hosts/host.ts';
import { type BuildPlan, buildKey, type FrozenSecret } from './build-plan.ts';
import { newId } from './secrets.ts';

/** A host that answers and has the parent's image. */
export interface Candidate {
  readonly host: Host;
  readonly parentDigest: string;
  readonly key: string;
}

/** `away`: nobody could be asked. `unknown`: one was asked, and nothing was heard. */
export type Placed = 'accepted' | 'refused' | 'away' | 'unknown';

/** A host accepts or refuses at once; what it is asked for comes later. */
const answerMs = 30_000;

export class BuildOrders {
  readonly #database: Database;
  readonly #fleet: Fleet;

  constructor(database: Database, fleet: Fleet) {
    this.#database = database;
    this.#fleet = fleet;
  }

  async candidates(
    plan: BuildPlan,
    secrets: readonly FrozenSecret[],
  ): Promise<readonly [Candidate, ...Candidate[]]> {
    const reports = await this.#fleet.asked((host) => host.report());
    if (reports.length === 0) throw new Refusal('builds_unavailable');
    if (reports.every(({ answer }) => answer === undefined)) throw new Refusal('host_unreachable');
    const found = reports.flatMap(({ host, answer }): Candidate[] => {
      const parentDigest = answer?.host.images[plan.parent];
      if (parentDigest === undefined) return [];
      return [{ host, parentDigest, key: buildKey(plan, parentDigest, secrets) }];
    });
    const [first, ...rest] = found;
    // The parent's image is still being made.
    if (first === undefined) throw new Refusal('build_contention');
    return [first, ...rest];
  }

  /** Those whose host builds nothing at the moment, as far as the records know. */
  async free(candidates: readonly Candidate[]): Promise<Candidate[]> {
    const busy = await buildingHosts(this.#database);
    return candidates.filter(({ host }) => !busy.has(host.id));
  }

  /** A build of the same thing whose host answers and still holds what it made. */
  async reusable(
    accountId: string | null,
    candidates: readonly Candidate[],
  ): Promise<BuildRow | undefined> {
    const keys = candidates.map(({ key }) => key);
    for (const row of await sameBuilds(this.#database, accountId, keys)) {
      const found = candidates.find(
        ({ host, key }) => host.id === row.host_id && key === row.build_key,
      );
      const told = await found?.host.build(row.id).catch(() => undefined);
      if (told?.status === 'succeeded') return row;
    }
    return undefined;
  }

  newBuild(plan: BuildPlan, accountId: string | null, { host, key }: Candidate): NewBuild {
    return {
      id: newId('build'),
      account_id: accountId,
      ref: plan.ref,
      doc_digest: plan.docDigest,
      build_key: key,
      family: plan.family,
      parent: plan.parent,
      disk_gb: plan.shape.disk_gb,
      host_id: host.id,
      steps: plan.steps.map(({ kind, label }) => ({ kind, label, status: 'pending' })),
    };
  }

  /** One host after the other, until one takes it. `values` are those of secrets, by their variables. */
  async place(
    row: BuildRow,
    plan: BuildPlan,
    candidates: readonly Candidate[],
    values: HostBuildOrder['secrets'],
  ): Promise<Placed> {
    let refused = false;
    for (const candidate of candidates) {
      const { host, parentDigest: digest } = candidate;
      if (host.id !== row.host_id && !(await this.#moved(row, candidate))) continue;
      const { shape, steps } = plan;
      const parent = { template: plan.parent, digest };
      const order = { parent, shape, steps: [...steps], secrets: values };
      try {
        const answer = await host.orderBuild(row.id, order, answerMs);
        if (answer.outcome === 'accepted') return 'accepted';
        refused = true;
      } catch (error) {
        if (!(error instanceof HostAway)) return 'unknown';
      }
    }
    return refused ? 'refused' : 'away';
  }

  async #moved({ id }: BuildRow, { host, key }: Candidate): Promise<boolean> {
    try {
      await moveBuild(this.#database, id, host.id, key);
      return true;
    } catch (error) {
      if (violated(error) === 'builds_one_per_host') return false;
      throw error;
    }
  }
}
