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

export class Ring<Kept extends Entry = Entry> {
  readonly #bounds: RingBounds;
  readonly #onDrop: (entry: Kept) => void;
  #entries: Kept[] = [];
  /** Those before it in the array have made way. */
  #first = 0;
  #characters = 0;
  #dropped = 0;

  /** `onDrop` is told of each that makes way. */
  constructor(bounds: RingBounds, onDrop: (entry: Kept) => void = () => {}) {
    this.#bounds = bounds;
    this.#onDrop = onDrop;
  }

  /** The position after the newest entry that made way: from here on nothing is missing. */
  get dropped(): number {
    return this.#dropped;
  }

  push(entry: Kept): void {
    this.#entries.push(entry);
    this.#characters += entry.text.length;
    const { entries, characters } = this.#bounds;
    while (this.#entries.length - this.#first > entries || this.#characters > characters) {
      const oldest = this.#entries[this.#first] as Kept;
      this.#characters -= oldest.text.length;
      this.#dropped = oldest.seq + 1;
      this.#first += 1;
      this.#onDrop(oldest);
    }
    // Now and then, so that an entry costs the same however many there were.
    if (this.#first > entries) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Those from this position on. */
  *from(position: number): Generator<Kept, void, undefined> {
    for (let i = this.#find(position); i < this.#entries.length; i += 1) {
      yield this.#entries[i] as Kept;
    }
  }

  /** The index of the first entry that is not before the position. */
  #find(position: number): number {
    let [low, high] = [this.#first, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#entries[middle] as Kept).seq < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The entries of two rings in one row. */
export function* merged<Kept extends Entry>(
  first: Generator<Kept, void, undefined>,
  second: Generator<Kept, void, undefined>,
): Generator<Kept, void, undefined> {
  let [a, b] = [first.next().value, second.next().value];
  while (a !== undefined || b !== undefined) {
    if (b === undefined || (a !== undefined && a.seq < b.seq)) {
      yield a as Kept;
      a = first.next().value;
    } else {
      yield b;
      b = second.next().value;
    }
  }
}
