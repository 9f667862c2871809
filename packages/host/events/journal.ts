// What happened to all computers of this host, in one row, for the control plane that makes webhooks of it.
// Bounded; what a reader missed is known by computer.

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { EventType } from '@cubicle/contract/events.ts';
import type { HostEvent, HostEventPage } from '@cubicle/contract/host/api.ts';
import { countOf, cursorAt } from './cursor.ts';
import type { Source } from './history.ts';
import { type Entry, merged, Ring } from './ring.ts';

export interface Told {
  readonly source: Source;
  readonly type: EventType | 'gap';
  readonly computer: string;
  /** The computer's own. */
  readonly cursor: string;
  readonly at: Date;
  readonly text: string;
}

type Noted = Entry & Told;

/** A minute of everything that a hundred guests may report. Texts are shared with their histories. */
const bounds = {
  daemon: { entries: 65_536, characters: 16 * 1024 * 1024 },
  guest: { entries: 65_536, characters: 32 * 1024 * 1024 },
};
/** A page is at most so long, and one event. */
const pageCharacters = 1024 * 1024;
/** Computers of which something was dropped unread; of more than these it is no longer known which. */
const mostDropped = 16_384;

export interface Gaps {
  /** A gap of this computer, at the cursor after the newest entry that was lost. */
  lost(computer: string, cursor: string): HostEvent;
  /** Of all computers, or of those alone that were there before this daemon. */
  everybody(which: 'all' | 'found'): HostEvent[];
}

export class Journal {
  readonly #epoch = randomBytes(8).toString('hex');
  readonly #rings = {
    daemon: new Ring<Noted>(bounds.daemon, (entry) => this.#dropped(entry)),
    guest: new Ring<Noted>(bounds.guest, (entry) => this.#dropped(entry)),
  };
  /** The newest entry of each computer that made way. */
  readonly #lost = new Map<string, { readonly seq: number; readonly cursor: string }>();
  /** Whoever stands before this may have lost entries of computers that are no longer known. */
  #lostUnknown = 0;
  #count = 0;
  #ended = false;
  #news = Promise.withResolvers<void>();

  note(told: Told): void {
    // Only streams nominate trees, and only they hear of them.
    if (told.type === 'file.changed') return;
    this.#rings[told.source].push({ ...told, seq: this.#count });
    this.#count += 1;
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** Everything after the cursor as far as it is held; from the beginning without one. */
  page(after: string | undefined, most: number, gaps: Gaps): HostEventPage {
    const position = after === undefined ? 0 : countOf(this.#epoch, after);
    const from = position ?? 0;
    const events = this.#gaps(after, position, gaps);
    let [next, characters, taken] = [this.#count, 0, 0];
    for (const entry of this.#held(from)) {
      if (taken >= most || characters > pageCharacters) {
        next = entry.seq;
        break;
      }
      const { type, computer, cursor, at, text } = entry;
      events.push({ type, computer, cursor, at: at.toISOString(), body: text });
      characters += text.length;
      taken += 1;
    }
    return { cursor: cursorAt(this.#epoch, next), events };
  }

  /** The daemon ends: nobody waits any longer. */
  end(): void {
    this.#ended = true;
    this.#news.resolve();
  }

  /** Returns when something was noted, or after this time. */
  async news(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#ended) throw new Error('the host ends');
    const over = new AbortController();
    const patience = pause(ms, undefined, { signal: AbortSignal.any([over.signal, signal]) });
    await Promise.race([this.#news.promise, patience.catch(() => {})]);
    over.abort();
  }

  #held(position: number): Generator<Noted, void, undefined> {
    return merged(this.#rings.daemon.from(position), this.#rings.guest.from(position));
  }

  #gaps(after: string | undefined, position: number | undefined, gaps: Gaps): HostEvent[] {
    if (position === undefined) return gaps.everybody('found');
    if (position < this.#lostUnknown) return gaps.everybody('all');
    const events: HostEvent[] = [];
    for (const [computer, { seq, cursor }] of this.#lost) {
      if (seq >= position) events.push(gaps.lost(computer, cursor));
      // The reader is past it, and nobody comes back from there.
      else if (after !== undefined) this.#lost.delete(computer);
    }
    return events;
  }

  #dropped({ computer, seq, cursor }: Noted): void {
    // The newest last, so that the first is the one to forget.
    this.#lost.delete(computer);
    this.#lost.set(computer, { seq, cursor });
    if (this.#lost.size <= mostDropped) return;
    const [oldest] = this.#lost;
    if (oldest === undefined) return;
    this.#lost.delete(oldest[0]);
    this.#lostUnknown = Math.max(this.#lostUnknown, oldest[1].seq + 1);
  }
}
