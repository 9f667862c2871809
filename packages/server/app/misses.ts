// What a host no longer names is not gone yet: it must be missing several times in a row to be believed so.

const until = 3;

export class Misses {
  readonly #counts = new Map<string, number>();

  /** It is there. */
  seen(id: string): void {
    this.#counts.delete(id);
  }

  /** It was missing once more. Whether it is gone. */
  missed(id: string): boolean {
    const count = (this.#counts.get(id) ?? 0) + 1;
    if (count < until) this.#counts.set(id, count);
    else this.#counts.delete(id);
    return count >= until;
  }
}
