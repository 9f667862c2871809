// The rate budget (Part 8): an account-wide bucket and half of it per key, refilling steadily over a
// minute. PostgreSQL holds the buckets for all processes; each process leases slices and spends them
// without a round trip. A slice comes out of both buckets at once, so a process can never overspend.

import type { Lease, LeaseAsk } from '../db/budgets.ts';
import type { Authority } from './authority.ts';

export interface BudgetStore {
  lease(ask: LeaseAsk): Promise<Lease>;
  giveBack(returned: { bucket: string; amount: number }[]): Promise<void>;
}

/** What the headers of a metered answer tell: the bucket that binds. */
export interface Meter {
  readonly admitted: boolean;
  readonly bucket: 'account' | 'key';
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the bucket is full again. */
  readonly resetS: number;
  /** Seconds until the call could be paid; 0 when it was admitted. */
  readonly retryAfterS: number;
}

/** A bucket as last seen in PostgreSQL and counted on by this process; others only lower it. */
interface Bucket {
  /** What PostgreSQL has, as of `seenAt`. */
  level: number;
  seenAt: number;
  /** Leased from it by this process and not spent. */
  held: number;
}

interface Purse {
  readonly account: AccountBucket;
  readonly key: Bucket;
  readonly accountId: string;
  readonly keyId: string;
  /** The size of the last slice, and when it was taken. */
  slice: number;
  sliceAt: number;
  leasing: Promise<void> | undefined;
  usedAt: number;
}

interface AccountBucket extends Bucket {
  purses: number;
}

/** Units held by a key that rests this long go back to the buckets. */
const restMs = 2_000;
/** A slice that was spent sooner than this was too small: the next one is twice as large. */
const briskMs = 500;
const smallestSlice = 8;

export class Budget {
  readonly #store: BudgetStore;
  readonly #now: () => number;
  readonly #purses = new Map<string, Purse>();
  readonly #accounts = new Map<string, AccountBucket>();

  constructor(store: BudgetStore, now: () => number = () => performance.now()) {
    this.#store = store;
    this.#now = now;
  }

  /** Takes `cost` units, or tells when they will be there. */
  charge(authority: Authority, cost: number): Meter | Promise<Meter> {
    const purse = this.#purse(authority);
    const cap = authority.rateUnits;
    purse.usedAt = this.#now();
    if (purse.key.held < cost) return this.#chargeFromStore(purse, cap, cost);
    const meter = this.#spend(purse, cap, cost);
    // Asking ahead, so that the next caller need not wait; whoever needs it hears of a failure.
    if (purse.key.held * 4 < purse.slice && purse.leasing === undefined) {
      this.#lease(purse, cap, 1).catch(() => {});
    }
    return meter;
  }

  async #chargeFromStore(purse: Purse, cap: number, cost: number): Promise<Meter> {
    for (;;) {
      if (purse.key.held >= cost) return this.#spend(purse, cap, cost);
      if (purse.leasing !== undefined) {
        await purse.leasing;
        continue;
      }
      // When even the most hopeful count cannot pay, PostgreSQL need not be asked; but a bucket that
      // was never seen tells nothing of when it can.
      const seen = purse.key.level < Number.POSITIVE_INFINITY;
      this.#refill(purse, cap);
      if (seen && (left(purse.key) < cost || left(purse.account) < cost)) break;
      if ((await this.#lease(purse, cap, cost - purse.key.held)) === 0) break;
    }
    return this.#meter(purse, cap, cost, false);
  }

  async #lease(purse: Purse, cap: number, need: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { account, key, accountId, keyId } = purse;
    purse.leasing = promise;
    try {
      const brisk = this.#now() - purse.sliceAt < briskMs;
      const { granted, account_level, key_level } = await this.#store.lease({
        accountId,
        keyId,
        cap,
        accountHeld: account.held,
        keyHeld: key.held,
        need,
        want: brisk ? purse.slice * 2 : Math.max(smallestSlice, Math.floor(purse.slice / 2)),
      });
      const now = this.#now();
      Object.assign(account, { level: account_level, seenAt: now, held: account.held + granted });
      Object.assign(key, { level: key_level, seenAt: now, held: key.held + granted });
      purse.slice = granted;
      purse.sliceAt = now;
      purse.usedAt = now;
      return granted;
    } finally {
      purse.leasing = undefined;
      resolve();
    }
  }

  #spend(purse: Purse, cap: number, cost: number): Meter {
    this.#refill(purse, cap);
    purse.key.held -= cost;
    purse.account.held -= cost;
    return this.#meter(purse, cap, cost, true);
  }

  /** Counts the time since both buckets were seen; what is held counts as being in them. */
  #refill(purse: Purse, cap: number): void {
    const now = this.#now();
    refill(purse.account, cap, now);
    refill(purse.key, halfOf(cap), now);
  }

  #meter(purse: Purse, cap: number, cost: number, admitted: boolean): Meter {
    const account = Math.max(0, left(purse.account));
    const key = Math.max(0, left(purse.key));
    const bucket = account < key ? 'account' : 'key';
    const limit = bucket === 'account' ? cap : halfOf(cap);
    const remaining = Math.min(account, key);
    const seconds = (units: number, perMinute: number) =>
      Math.ceil((Math.max(0, units) * 60) / perMinute);
    return {
      admitted,
      bucket,
      limit,
      remaining: Math.floor(remaining),
      resetS: seconds(limit - remaining, limit),
      // The call is paid from both, and the key's refills half as fast.
      retryAfterS: admitted
        ? 0
        : Math.max(1, seconds(cost - account, cap), seconds(cost - key, halfOf(cap))),
    };
  }

  #purse({ accountId, keyId }: Authority): Purse {
    let purse = this.#purses.get(keyId);
    if (purse === undefined) {
      const account = this.#accounts.get(accountId) ?? { ...this.#unseen(), purses: 0 };
      account.purses += 1;
      this.#accounts.set(accountId, account);
      purse = {
        account,
        key: this.#unseen(),
        accountId,
        keyId,
        slice: 0,
        sliceAt: Number.NEGATIVE_INFINITY,
        leasing: undefined,
        usedAt: 0,
      };
      this.#purses.set(keyId, purse);
    }
    return purse;
  }

  #unseen(): Bucket {
    return { level: Number.POSITIVE_INFINITY, seenAt: this.#now(), held: 0 };
  }

  /** Gives back what rests; with `all`, everything. Called now and then, and once before stopping. */
  async settle(all = false): Promise<void> {
    const now = this.#now();
    const returned: { bucket: string; amount: number }[] = [];
    for (const purse of this.#purses.values()) {
      if (purse.leasing !== undefined || (!all && now - purse.usedAt < restMs)) continue;
      const { account, key, accountId, keyId } = purse;
      if (key.held > 0) {
        returned.push({ bucket: accountId, amount: key.held }, { bucket: keyId, amount: key.held });
      }
      account.held -= key.held;
      account.purses -= 1;
      if (account.purses === 0) this.#accounts.delete(accountId);
      this.#purses.delete(keyId);
    }
    if (returned.length > 0) await this.#store.giveBack(returned);
  }
}

function refill(bucket: Bucket, cap: number, now: number): void {
  const gained = ((now - bucket.seenAt) / 60_000) * cap;
  bucket.level = Math.min(cap - bucket.held, bucket.level + gained);
  bucket.seenAt = now;
}

function left(bucket: Bucket): number {
  return bucket.level + bucket.held;
}

function halfOf(cap: number): number {
  return Math.floor(cap / 2);
}
