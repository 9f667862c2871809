// What happened to one computer lately, in order. Kept in two rings, so that whatever a guest makes up about
// itself cannot push out what the host saw.

import { randomBytes } from 'node:crypto';
import { countOf, cursorAt } from './cursor.ts';
import { type Entry, merged, Ring } from './ring.ts';

export type Source = 'daemon' | 'guest';

/** At most two megabytes a computer, and only where a guest writes long titles without end. */
const bounds = {
  daemon: { entries: 512, characters: 128 * 1024 },
  guest: { entries: 2_048, characters: 896 * 1024 },
};

export class History {
  /** New with each life of the daemon, and another for each computer. */
  readonly #epoch = randomBytes(8).toString('hex');
  readonly #rings = { daemon: new Ring(bounds.daemon), guest: new Ring(bounds.guest) };
  #count = 0;

  /** The position after the newest entry. */
  get head(): number {
    return this.#count;
  }

  /** From this position on everything is held. */
  get oldest(): number {
    return Math.max(this.#rings.daemon.dropped, this.#rings.guest.dropped);
  }

  get daemonsOldest(): number {
    return this.#rings.daemon.dropped;
  }

  cursor(position: number): string {
    return cursorAt(this.#epoch, position);
  }

  /** Nothing for a cursor that was never given out. */
  position(cursor: string): number | undefined {
    const count = countOf(this.#epoch, cursor);
    return count === undefined || count > this.#count ? undefined : count;
  }

  append(source: Source, write: (seq: number, cursor: string) => string): Entry {
    const seq = this.#count;
    this.#count += 1;
    const entry = { seq, text: write(seq, this.cursor(this.#count)) };
    this.#rings[source].push(entry);
    return entry;
  }

  daemonsFrom(position: number): Generator<Entry, void, undefined> {
    return this.#rings.daemon.from(position);
  }

  /** Everything held from this position on, in order. */
  from(position: number): Generator<Entry, void, undefined> {
    return merged(this.#rings.daemon.from(position), this.#rings.guest.from(position));
  }
}
