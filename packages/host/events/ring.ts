// The newest entries of a kind, by count and by size; the oldest make way.

export interface Entry {
  /** Where it stands among all entries of its computer. */
  readonly seq: number;
  /** The frame as it is sent, written once. */
  readonly text: string;
}

export interface RingBounds {
  readonly entries: number;
  /** UTF-16 units: two bytes each at most. */
  readonly characters: number;
}

export class Ring {
  readonly #bounds: RingBounds;
  #entries: Entry[] = [];
  /** Those before it in the array have made way. */
  #first = 0;
  #characters = 0;
  #dropped = 0;

  constructor(bounds: RingBounds) {
    this.#bounds = bounds;
  }

  /** The position after the newest entry that made way: from here on nothing is missing. */
  get dropped(): number {
    return this.#dropped;
  }

  push(entry: Entry): void {
    this.#entries.push(entry);
    this.#characters += entry.text.length;
    const { entries, characters } = this.#bounds;
    while (this.#entries.length - this.#first > entries || this.#characters > characters) {
      const oldest = this.#entries[this.#first] as Entry;
      this.#characters -= oldest.text.length;
      this.#dropped = oldest.seq + 1;
      this.#first += 1;
    }
    // Now and then, so that an entry costs the same however many there were.
    if (this.#first > entries) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Those from this position on. */
  *from(position: number): Generator<Entry, void, undefined> {
    for (let i = this.#find(position); i < this.#entries.length; i += 1) {
      yield this.#entries[i] as Entry;
    }
  }

  /** The index of the first entry that is not before the position. */
  #find(position: number): number {
    let [low, high] = [this.#first, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Entry).seq < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
