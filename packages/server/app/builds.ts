// Builds as callers order and read them: Part 4 Builds, wire-account section 2.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Build, BuildProgress } from '@cubicle/contract/resources/builds.ts';
import type { HostBuildOrder } from '@cubicle/contract/host/builds.ts';
import { forgetRequest, noteRequest } from '../db/build-requests.ts';
import * as store from '../db/builds.ts';
import { type Database, type Runner, violated } from '../db/database.ts';
import { planOfAccount } from '../db/plans.ts';
import { noteSecretUse } from '../db/secrets.ts';
import { readGiven, requireValid } from '../documents/given.ts';
import type { ValidDocument } from '../documents/read.ts';
import type { DocumentReader } from '../documents/reader.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { type Authority, changeAs } from './authority.ts';
import { requireAllowance, requirePool, requireRequest } from './build-allowance.ts';
import type { BuildFollower } from './build-follower.ts';
import type { BuildOrders, Candidate } from './build-orders.ts';
import { type BuildPlan, familyOf, planOf } from './build-plan.ts';
import { buildOf, progressOf } from './build-record.ts';
import type { BuildSecrets } from './build-secrets.ts';

export interface BuildsParts {
  readonly database: Database;
  readonly fleet: Fleet;
  readonly reader: DocumentReader;
  readonly secrets: BuildSecrets;
  readonly orders: BuildOrders;
  readonly follower: BuildFollower;
}

interface Order {
  readonly plan: BuildPlan;
  readonly candidates: readonly [Candidate, ...Candidate[]];
  /** A build that made the same. */
  readonly same: store.BuildRow | undefined;
}

/** Refusals of what a host was or would have been asked: each is a request, and no build (rule 8). */
const counted = new Set([
  'document_invalid',
  'build_parent',
  'build_secrets_limit',
  'build_secret_unresolved',
  'build_secret_undeliverable',
  'build_contention',
]);

export class Builds {
  readonly #parts: BuildsParts;

  constructor(parts: BuildsParts) {
    this.#parts = parts;
  }

  async create(authority: Authority, bytes: Buffer, noReuse: boolean): Promise<Build> {
    const { database, reader } = this.#parts;
    const { accountId } = authority;
    if (!((await planOfAccount(database, accountId))?.builds_per_day ?? 0)) {
      throw new Refusal('builds_not_in_plan');
    }
    const reading = await readGiven(reader, bytes);
    try {
      return await this.#create(authority, requireValid(reading), noReuse);
    } catch (error) {
      if (error instanceof Refusal && counted.has(error.error)) {
        await changeAs(database, authority, 'member', async (tx) => {
          await requireRequest(tx, accountId);
          await noteRequest(tx, accountId, null, false);
        });
      }
      throw error;
    }
  }

  async list(
    { accountId }: Authority,
    allowPartial: boolean,
  ): Promise<{ builds: Build[]; short: boolean }> {
    const { database, fleet } = this.#parts;
    const rows = await store.listBuilds(database, accountId);
    const hosts = await fleet.asked(
      (host) => host.builds(),
      new Set(rows.map(({ host_id }) => host_id)),
    );
    const answers = new Map(hosts.map(({ host, answer }) => [host.id, answer]));
    const short = hosts.some(({ answer }) => answer === undefined);
    if (short && !allowPartial) throw new Refusal('host_unreachable');
    const held = rows.filter(({ host_id, image_id }) => {
      const answer = answers.get(host_id);
      // What left no image is the record's alone.
      return answer && (image_id === null || answer.builds.some(({ id }) => id === image_id));
    });
    return { builds: held.map(buildOf), short };
  }

  async get(authority: Authority, id: string): Promise<Build> {
    return buildOf(await this.row(authority, id));
  }

  async progress(authority: Authority, id: string): Promise<BuildProgress> {
    return progressOf(await this.row(authority, id));
  }

  async row({ accountId }: Authority, id: string): Promise<store.BuildRow> {
    const row = isId('build', id)
      ? await store.findBuild(this.#parts.database, accountId, id)
      : undefined;
    if (row === undefined) throw new Refusal('build_unknown');
    return row;
  }

  async #create(authority: Authority, reading: ValidDocument, noReuse: boolean): Promise<Build> {
    const { secrets, orders } = this.#parts;
    const { accountId } = authority;
    requireOwn(accountId, reading);
    const plan = planOf(reading);
    const { frozen, values } = await secrets.open(accountId, plan.secrets);
    const candidates = await orders.candidates(plan, frozen);
    const same = noReuse ? undefined : await orders.reusable(accountId, candidates);
    const row = await this.#recorded(authority, { plan, candidates, same });
    if (row.status === 'running') await this.#place(row, plan, candidates, values);
    // Whoever reads it next may find it done already, by what another one made.
    return buildOf({ ...row, status: 'running', finished_at: null });
  }

  /** One transaction: the allowances, the room, and the build or the reuse of another one's image. */
  async #recorded(authority: Authority, order: Order): Promise<store.BuildRow> {
    const { database, orders } = this.#parts;
    const { accountId } = authority;
    const { plan, candidates, same } = order;
    const [free = candidates[0]] = await orders.free(candidates);
    try {
      return await changeAs(database, authority, 'member', async (tx) => {
        await requireAllowance(tx, accountId);
        const reuse = same && (await this.#reused(tx, accountId, order, same));
        if (reuse !== undefined) {
          await noteRequest(tx, accountId, reuse.id, false);
          return reuse;
        }
        await requirePool(tx, accountId, plan.shape.disk_gb);
        const build = orders.newBuild(plan, accountId, free);
        const row = await store.insertBuild(tx, build);
        await noteRequest(tx, accountId, row.id, true);
        await noteSecretUse(
          tx,
          plan.secrets.map(({ id }) => id),
        );
        return row;
      });
    } catch (error) {
      if (violated(error) === 'builds_one_per_host') throw new Refusal('build_contention');
      throw error;
    }
  }

  async #reused(
    tx: Runner,
    accountId: string,
    { plan, candidates }: Order,
    same: store.BuildRow,
  ): Promise<store.BuildRow | undefined> {
    const at = candidates.find(({ host }) => host.id === same.host_id) ?? candidates[0];
    const build = this.#parts.orders.newBuild(plan, accountId, at);
    const note = `The image of ${same.id} is of the same document and the same secrets.`;
    // Nothing is done for it.
    const steps = build.steps.map((step) => ({ ...step, status: 'skipped' }));
    const reuse = { image: same.id, note, keep: limits.buildsKept };
    return store.insertReuse(tx, { ...build, steps }, reuse);
  }

  async #place(
    row: store.BuildRow,
    plan: BuildPlan,
    candidates: readonly Candidate[],
    values: HostBuildOrder['secrets'],
  ): Promise<void> {
    const { database, orders, follower } = this.#parts;
    const placed = await follower.ordering(row.id, async () => {
      const first = candidates.filter(({ host }) => host.id === row.host_id);
      return orders.place(row, plan, [...first, ...(await orders.free(candidates))], values);
    });
    if (placed === 'accepted') return;
    if (placed === 'unknown') throw new Refusal('build_outcome_unknown', {}, { build_id: row.id });
    await database.transaction(async (tx) => {
      await forgetRequest(tx, row.id);
      await store.dropBuild(tx, row.id);
    });
    throw new Refusal(placed === 'away' ? 'host_unreachable' : 'build_contention');
  }
}

/** Rule 2: at no cost. */
function requireOwn(accountId: string, { document }: ValidDocument): void {
  if (document.metadata.namespace !== accountId) throw new Refusal('template_namespace');
  const own = `golden-${accountId}`;
  const family = familyOf(document);
  if (family !== own && !family.startsWith(`${own}-`))
    throw new Refusal('build_family', { family });
}
