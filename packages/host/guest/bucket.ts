// A bound on how often a guest may do something: so many at once, so many a second.

export class Bucket {
  readonly #size: number;
  readonly #perMs: number;
  readonly #now: () => number;
  #level: number;
  #seenAt: number;

  constructor(size: number, perSecond: number, now: () => number) {
    this.#size = size;
    this.#perMs = perSecond / 1_000;
    this.#now = now;
    this.#level = size;
    this.#seenAt = now();
  }

  /** False when it was once too often. */
  take(): boolean {
    const now = this.#now();
    this.#level = Math.min(this.#size, this.#level + (now - this.#seenAt) * this.#perMs);
    this.#seenAt = now;
    if (this.#level < 1) return false;
    this.#level -= 1;
    return true;
  }
}
