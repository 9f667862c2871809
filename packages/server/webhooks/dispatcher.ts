// Makes deliveries: takes lanes with something due, sends four at a time in each, and writes what came of it.
// Any number of processes do so on one queue.

import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { limits } from '@cubicle/contract/limits.ts';
import type { Database } from '../db/database.ts';
import {
  type DeliveryWrite,
  disableFailingWebhooks,
  dropPending,
  type DueDelivery,
  type Fetched,
  fetchLanes,
  leaseMs,
  releaseLanes,
  renewLanes,
  takeLanes,
  type Target,
} from '../db/webhook-lanes.ts';
import { aboutWebhook } from '../db/sealed-values.ts';
import type { Keyring } from '../keyring.ts';
import type { AttemptResult, Sender } from './attempt.ts';
import { fetchedAtOnce, isServed, Lane } from './lane.ts';
import { Ledger } from './ledger.ts';
import { waitAfter } from './schedule.ts';

export interface DispatcherParts {
  readonly database: Database;
  readonly keyring: Keyring;
  readonly sender: Pick<Sender, 'send'>;
  /** The clock that deliveries fall due by. */
  readonly date: () => Date;
  /** Milliseconds after attempts 1 to 7. */
  readonly waits: readonly number[];
  readonly log: (problem: unknown) => void;
  /** Counts an attempt by its outcome: `delivered`, or the first words of its error. */
  readonly count?: (outcome: string, seconds: number) => void;
}

/** Each is at most four attempts under way. */
const mostLanes = 512;
/** Of several processes none takes everything at once. */
const takenAtOnce = 64;
/** Deliveries fall due without anybody telling. */
const lookMs = 500;
const renewMs = 2_500;
/** A lane without work is kept for the next event so long. */
const lingerMs = 2_000;
/** While others wait, a lane is held no longer. */
const turnMs = 5_000;
/** How long attempts under way may go on when the service stops. */
const graceMs = 2_000;
const settleMs = 3_000;
const hourMs = 3_600_000;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #holder = randomBytes(8).toString('hex');
  readonly #lanes = new Map<string, Lane>();
  readonly #ledger: Ledger;
  readonly #ending = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  readonly #timers: NodeJS.Timeout[] = [];
  #round: Promise<void> | undefined;
  #again = false;
  #mayTake = false;
  #stopped = true;
  /** By the steady clock: until then the lanes are certainly ours, and so is the time an attempt takes. */
  #safeUntil = Number.NEGATIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    // Every attempt listens to it.
    setMaxListeners(0, this.#ending.signal);
    const { database, date, log } = parts;
    const written = (writes: readonly DeliveryWrite[]) => this.#written(writes);
    this.#ledger = new Ledger({ database, holder: this.#holder, date, written, log });
  }

  start(): void {
    this.#stopped = false;
    this.#timers.push(setInterval(() => this.wake(), lookMs).unref());
    this.#timers.push(setInterval(() => void this.#renew(), renewMs).unref());
    this.wake();
  }

  /** Something may be due: of any lane, or of the one whose subscription changed. */
  wake(changed = ''): void {
    if (changed === '') for (const lane of this.#lanes.values()) lane.hinted = true;
    // As it stood, nothing more is sent.
    else this.#lanes.get(changed)?.forget();
    this.#mayTake = true;
    this.#look();
  }

  /** What is under way comes to its end, or is broken off and left to the others. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#round;
    const over = new AbortController();
    const patience = pause(graceMs, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.all(this.#attempts), patience]);
    over.abort();
    this.#ending.abort();
    await Promise.all(this.#attempts);
    await this.#ledger.settle(settleMs);
    const { database, date, log } = this.#parts;
    const ids = [...this.#lanes.keys()];
    this.#lanes.clear();
    if (ids.length > 0) await releaseLanes(database, this.#holder, ids, date()).catch(log);
  }

  #look(): void {
    if (this.#stopped) return;
    if (this.#round !== undefined) {
      this.#again = true;
      return;
    }
    this.#round = this.#go().finally(() => {
      this.#round = undefined;
      if (this.#again) {
        this.#again = false;
        this.#look();
      }
    });
  }

  async #go(): Promise<void> {
    try {
      if (this.#mayTake) await this.#take();
      const wanting = [...this.#lanes.values()].filter((lane) => lane.wantsMore);
      if (wanting.length > 0) await this.#fetch(wanting);
      await this.#letGo();
    } catch (error) {
      // The next look tries again.
      this.#parts.log(error);
    }
  }

  async #take(): Promise<void> {
    const { database, date } = this.#parts;
    this.#mayTake = false;
    const room = mostLanes - this.#lanes.size;
    const now = performance.now();
    if (room <= 0) {
      for (const lane of this.#lanes.values()) {
        if (now - lane.heldSince > turnMs) lane.yields = true;
        if (lane.yields) lane.forget();
      }
      return;
    }
    const most = Math.min(room, takenAtOnce);
    const taken = await takeLanes(database, this.#holder, date(), most);
    if (taken.length === 0) return;
    // Those held before were renewed at least this lately, and these are newer.
    if (this.#lanes.size === 0) this.#safeUntil = now + leaseMs;
    for (const id of taken) {
      const lapsed = this.#lanes.get(id);
      if (lapsed !== undefined) this.#abandon(lapsed);
      this.#lanes.set(id, new Lane(id, now));
    }
    if (taken.length === most) this.#mayTake = this.#again = true;
  }

  async #fetch(wanting: readonly Lane[]): Promise<void> {
    const { database, date } = this.#parts;
    const versions = wanting.map((lane) => lane.version);
    for (const lane of wanting) lane.readBegins();
    let fetched: Map<string, Fetched> | undefined;
    try {
      const ids = wanting.map(({ id }) => id);
      fetched = await fetchLanes(database, ids, date(), fetchedAtOnce);
    } finally {
      for (const [n, lane] of wanting.entries()) {
        const found = fetched?.get(lane.id);
        // One that changed meanwhile is read again.
        if (fetched === undefined || lane.version !== versions[n]) lane.hinted = true;
        else if (found === undefined) this.#abandon(lane);
        else if (isServed(found.target)) this.#fill(lane, found);
        lane.readEnds();
      }
    }
    for (const lane of wanting) {
      const target = fetched?.get(lane.id)?.target;
      if (target !== undefined && !isServed(target)) await this.#drop(lane, target);
    }
  }

  #fill(lane: Lane, found: Fetched): void {
    try {
      lane.opened = this.#open(found.target);
    } catch (error) {
      // Sealed by a keyring that this process does not have yet: for another one to send.
      this.#parts.log(error);
      return;
    }
    lane.fill(found);
    if (found.due.length > 0) lane.busyAt = performance.now();
    this.#send(lane);
  }

  #open({ webhook_id: id, url, secret, previous_secret, previous_until }: Target): Lane['opened'] {
    const { keyring } = this.#parts;
    const about = aboutWebhook(id);
    return {
      url,
      secret: keyring.open(secret, about),
      previous: previous_secret === null ? undefined : keyring.open(previous_secret, about),
      previousUntil: previous_until ?? undefined,
    };
  }

  async #drop(lane: Lane, { disabled_reason: reason }: Target): Promise<void> {
    const { database, date } = this.#parts;
    lane.forget();
    const dueBy = reason === 'failing' ? 'infinity' : date();
    const why = reason === 'failing' ? 'the subscription failed' : 'the subscription is disabled';
    const more = await dropPending(database, lane.id, why, dueBy, lane.known);
    lane.hinted = more;
    if (more) this.#again = true;
  }

  #send(lane: Lane): void {
    // Without certainty that the lane is ours for as long as an attempt takes, nothing is begun.
    if (this.#stopped || performance.now() > this.#safeUntil - limits.webhookAttemptMs) return;
    for (let next = lane.begin(); next !== undefined; next = lane.begin()) {
      const attempt: Promise<void> = this.#attempt(lane, next).finally(() =>
        this.#attempts.delete(attempt),
      );
      this.#attempts.add(attempt);
    }
  }

  async #attempt(lane: Lane, due: DueDelivery): Promise<void> {
    const { sender, date, count } = this.#parts;
    const { id, body } = due;
    const begunAt = date();
    const base = {
      id,
      webhookId: lane.id,
      attempts: due.attempts + 1,
      attemptedAt: begunAt,
      deliveredAt: null,
    };
    const before = { nextAt: due.next_at, status: due.last_status, error: due.last_error };
    this.#ledger.begin({ ...base, ...before, state: 'in_flight' });
    const since = performance.now();
    try {
      const url = lane.opened?.url ?? '';
      const shipment = { id, subscription: lane.id, url, body, secrets: lane.secrets(begunAt) };
      const result = await sender.send(shipment, this.#ending.signal);
      count?.(outcomeOf(result), (performance.now() - since) / 1_000);
      lane.ended(id);
      if (this.#lanes.get(lane.id) === lane) this.#ledger.end(this.#came(base, result));
    } catch {
      // Broken off at the end of the service.
      lane.ended(id);
      lane.written(id);
      this.#ledger.unsent(id);
    }
    lane.busyAt = performance.now();
    this.#send(lane);
    if (lane.wantsMore) this.#look();
  }

  #came(
    base: Pick<DeliveryWrite, 'id' | 'webhookId' | 'attempts' | 'attemptedAt'>,
    { ok, status, error, retryAfterMs }: AttemptResult,
  ): DeliveryWrite {
    const now = this.#parts.date();
    const finished = { ...base, status, error, nextAt: null, deliveredAt: null };
    if (ok) return { ...finished, state: 'delivered', deliveredAt: now };
    if (status === goneStatus) return { ...finished, state: 'dropped' };
    const wait = waitAfter(base.attempts, this.#parts.waits, retryAfterMs);
    if (wait === undefined) return { ...finished, state: 'exhausted' };
    return { ...finished, state: 'pending', nextAt: new Date(now.getTime() + wait) };
  }

  /** In the database: what is due now may be fetched, and endpoints that fail are disabled. */
  #written(writes: readonly DeliveryWrite[]): void {
    for (const { id, webhookId } of writes) {
      const lane = this.#lanes.get(webhookId);
      lane?.written(id);
      if (lane?.wantsMore === true) this.#look();
    }
    const exhausted = idsOf(writes.filter(({ state }) => state === 'exhausted'));
    const gone = idsOf(writes.filter(({ status }) => status === goneStatus));
    if (exhausted.length + gone.length === 0) return;
    const { database, date, log } = this.#parts;
    const now = date();
    const since = new Date(now.getTime() - limits.webhookHours * hourMs);
    disableFailingWebhooks(database, exhausted, gone, since, now).catch(log);
  }

  async #letGo(): Promise<void> {
    const { database, date } = this.#parts;
    const now = performance.now();
    const idle = [...this.#lanes.values()].filter(
      (lane) => lane.idle && (lane.yields || now - lane.busyAt > lingerMs),
    );
    if (idle.length === 0) return;
    for (const { id } of idle) this.#lanes.delete(id);
    const ids = idle.map(({ id }) => id);
    await releaseLanes(database, this.#holder, ids, date());
  }

  async #renew(): Promise<void> {
    if (this.#lanes.size === 0 || this.#stopped) return;
    const held = [...this.#lanes.values()];
    const asked = performance.now();
    try {
      const ids = held.map(({ id }) => id);
      const still = await renewLanes(this.#parts.database, this.#holder, ids);
      for (const lane of held) if (!still.has(lane.id)) this.#abandon(lane);
      this.#safeUntil = asked + leaseMs;
      // What was not begun while that was uncertain waits for nothing else.
      for (const lane of this.#lanes.values()) this.#send(lane);
    } catch (error) {
      this.#parts.log(error);
    }
  }

  /** It is somebody else's, or its subscription is gone. */
  #abandon(lane: Lane): void {
    if (this.#lanes.get(lane.id) === lane) this.#lanes.delete(lane.id);
    lane.yields = true;
    this.#ledger.forget(lane.id);
  }
}

/** The receiver wants no more (RFC 9110, section 15.5.11). */
const goneStatus = 410;

function idsOf(writes: readonly DeliveryWrite[]): string[] {
  return [...new Set(writes.map(({ webhookId }) => webhookId))];
}

function outcomeOf({ ok, error }: AttemptResult): string {
  if (ok) return 'delivered';
  return error?.replace(/^status (\d)\d\d$/, 'status $1xx') ?? 'failed';
}
