// The events of one computer: each is written once, kept, and passed to whoever listens.

import type { EventType } from '@cubicle/contract/events.ts';
import { capabilitiesFrame, eventFrame, gap } from './frames.ts';
import { History, type Source } from './history.ts';
import type { Told } from './journal.ts';
import { type StreamSocket, Subscriber } from './subscriber.ts';

export class Stream {
  readonly history = new History();
  readonly #computer: () => string | undefined;
  readonly #date: () => Date;
  readonly #note: (told: Told) => void;
  readonly #subscribers = new Set<Subscriber>();

  /**
   * `computer`: its id; nothing while it waits in the pool, where nobody hears of it. `note` hears of every
   * entry besides.
   */
  constructor(
    computer: () => string | undefined,
    date: () => Date,
    note: (told: Told) => void = () => {},
  ) {
    this.#computer = computer;
    this.#date = date;
    this.#note = note;
  }

  /** How many listen. */
  get size(): number {
    return this.#subscribers.size;
  }

  emit(source: Source, type: EventType, data: object = {}): void {
    this.#append(source, type, (told, seq) => eventFrame(type, told, seq, source, data));
  }

  /** Some of what the guest reported was not passed on. It takes a place, so that who resumes learns it. */
  lost(detail: string): void {
    this.#append('guest', 'gap', ({ computer, cursor }) =>
      JSON.stringify(this.#gap(computer, cursor, detail)),
    );
  }

  /** What to say to one whose cursor is not held. */
  gapNow(computer: string, detail: string, oldest = this.history.oldest) {
    const cursor = this.history.cursor(this.history.head);
    return this.#gap(computer, cursor, detail, oldest);
  }

  capabilities(events: readonly EventType[], detail: string): void {
    const computer = this.#computer();
    if (computer === undefined || this.#subscribers.size === 0) return;
    const frame = capabilitiesFrame(computer, events, detail);
    for (const subscriber of this.#subscribers) subscriber.notice(frame);
  }

  /** `over` is called once, whichever way it ends. */
  add(socket: StreamSocket, over: () => void): Subscriber {
    const subscriber: Subscriber = new Subscriber(socket, this.history, () => {
      if (this.#subscribers.delete(subscriber)) over();
    });
    this.#subscribers.add(subscriber);
    return subscriber;
  }

  close(detail: string): void {
    // Those alone that are there: whoever is put down may come back at once.
    const subscribers = [...this.#subscribers];
    for (const subscriber of subscribers) subscriber.putDown(detail);
  }

  #append(
    source: Source,
    type: EventType | 'gap',
    write: (told: { at: Date; computer: string; cursor: string }, seq: number) => string,
  ): void {
    const computer = this.#computer();
    if (computer === undefined) return;
    const at = this.#date();
    let cursor = '';
    const entry = this.history.append(source, (seq, after) => {
      cursor = after;
      return write({ at, computer, cursor }, seq);
    });
    this.#note({ source, type, computer, cursor, at, text: entry.text });
    for (const subscriber of this.#subscribers) subscriber.offer(entry);
  }

  #gap(computer: string, cursor: string, detail: string, oldest = this.history.oldest) {
    return gap({ at: this.#date(), computer, cursor }, this.history.cursor(oldest), detail);
  }
}
