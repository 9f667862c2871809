// One subscription whose deliveries this process makes: what is ready to be sent, and what is under way.

import { limits } from '@cubicle/contract/limits.ts';
import type { DueDelivery, Fetched, Target } from '../db/webhook-lanes.ts';

/** Fetched ahead, so that no attempt waits for the database between two others. */
export const fetchedAtOnce = 32;
const fewReady = 8;

export interface Opened {
  readonly url: string;
  readonly secret: Buffer;
  readonly previous: Buffer | undefined;
  readonly previousUntil: Date | undefined;
}

export class Lane {
  readonly id: string;
  readonly heldSince: number;
  opened: Opened | undefined;
  /** Something may be due that was not fetched. */
  hinted = true;
  /** It makes room for others: nothing more is begun. */
  yields = false;
  /** When it last had something to do. */
  busyAt: number;
  /** Counts what was forgotten: a read from before is of no use. */
  version = 0;
  /** Its rows are being read; those that are written meanwhile stay known until then. */
  #reading = false;
  #writtenMeanwhile: string[] = [];
  #ready: DueDelivery[] = [];
  readonly #underWay = new Set<string>();
  /** Under way, or ended and not yet written: not to be begun again. */
  readonly #known = new Set<string>();

  constructor(id: string, now: number) {
    this.id = id;
    this.heldSince = now;
    this.busyAt = now;
  }

  get wantsMore(): boolean {
    return this.hinted && !this.yields && this.#ready.length < fewReady;
  }

  get idle(): boolean {
    return this.#ready.length === 0 && this.#known.size === 0 && !(this.hinted && !this.yields);
  }

  /** What is under way, or has ended and is not yet written. */
  get known(): string[] {
    return [...this.#known];
  }

  /** What was fetched and not begun is forgotten: it is still in the queue. */
  forget(): void {
    this.#ready = [];
    this.hinted = true;
    this.version += 1;
  }

  /** From here until `readEnds` a read is under way. */
  readBegins(): void {
    this.#reading = true;
    this.hinted = false;
  }

  readEnds(): void {
    this.#reading = false;
    for (const id of this.#writtenMeanwhile.splice(0)) this.#known.delete(id);
  }

  /** What the read under way found. */
  fill({ due }: Fetched): void {
    this.#ready = due.filter(({ id }) => !this.#known.has(id));
    // Also where all of them are known: those are written soon, and then others are seen.
    if (due.length === fetchedAtOnce) this.hinted = true;
  }

  /** The next to begin, if one may. */
  begin(): DueDelivery | undefined {
    if (this.yields || this.#underWay.size >= limits.webhookConcurrency) return undefined;
    const next = this.#ready.shift();
    if (next === undefined) return undefined;
    this.#underWay.add(next.id);
    this.#known.add(next.id);
    return next;
  }

  ended(id: string): void {
    this.#underWay.delete(id);
  }

  written(id: string): void {
    if (this.#reading) this.#writtenMeanwhile.push(id);
    else this.#known.delete(id);
  }

  /** The secrets that sign now. */
  secrets(now: Date): Buffer[] {
    if (this.opened === undefined) return [];
    const { secret, previous, previousUntil } = this.opened;
    const both = previous !== undefined && previousUntil !== undefined && now < previousUntil;
    return both ? [secret, previous] : [secret];
  }
}

/** Whether its deliveries are made: also when only the plan has ended. */
export function isServed({ enabled, disabled_reason }: Target): boolean {
  return enabled || disabled_reason === 'plan';
}
