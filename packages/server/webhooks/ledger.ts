// What attempts came to, written in batches and in order: what begins while a statement is under way goes
// out with the next, and an attempt that ends before it was written to have begun is written once.

import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import { type DeliveryWrite, writeBegun, writeEnded, writeUnsent } from '../db/webhook-lanes.ts';

/** An attempt is shown to be under way once it has been for so long. */
const shownAfterMs = 20;
const mostAtOnce = 500;
const againMs = 250;

interface Begun {
  readonly write: DeliveryWrite;
  readonly since: number;
  shown: boolean;
}

export interface LedgerParts {
  readonly database: Database;
  readonly holder: string;
  readonly date: () => Date;
  /** These are in the database. */
  readonly written: (writes: readonly DeliveryWrite[]) => void;
  readonly log: (problem: unknown) => void;
}

export class Ledger {
  readonly #parts: LedgerParts;
  readonly #begun = new Map<string, Begun>();
  #ended: DeliveryWrite[] = [];
  #unsent: string[] = [];
  #writing: Promise<void> | undefined;
  #showTimer: NodeJS.Timeout | undefined;
  #givenUp = false;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  begin(write: DeliveryWrite): void {
    this.#begun.set(write.id, { write, since: performance.now(), shown: false });
    this.#showTimer ??= setTimeout(() => {
      this.#showTimer = undefined;
      this.#go();
    }, shownAfterMs).unref();
  }

  end(write: DeliveryWrite): void {
    this.#begun.delete(write.id);
    this.#ended.push(write);
    this.#go();
  }

  /** It was broken off: as if it had not begun. */
  unsent(id: string): void {
    if (this.#begun.get(id)?.shown === true) this.#unsent.push(id);
    this.#begun.delete(id);
    this.#go();
  }

  /** Of a lane that was lost: somebody else sends it. */
  forget(webhookId: string): void {
    for (const [id, { write }] of this.#begun) {
      if (write.webhookId === webhookId) this.#begun.delete(id);
    }
  }

  /** Until everything is written, or given up. */
  async settle(patienceMs: number): Promise<void> {
    this.#go();
    const over = new AbortController();
    const patience = pause(patienceMs, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([this.#writing, patience]);
    over.abort();
    this.#givenUp = true;
    clearTimeout(this.#showTimer);
  }

  #go(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    while (!this.#givenUp) {
      const begun = this.#toShow();
      const ended = this.#ended.slice(0, mostAtOnce);
      const unsent = this.#unsent.slice();
      if (begun.length + ended.length + unsent.length === 0) return;
      const { database, holder, date, written, log } = this.#parts;
      try {
        if (begun.length > 0) await writeBegun(database, holder, begun);
        if (ended.length > 0) await writeEnded(database, holder, ended);
        if (unsent.length > 0) await writeUnsent(database, holder, unsent, date());
      } catch (error) {
        log(error);
        // What ended stays to be written, and is not sent again meanwhile.
        await pause(againMs, undefined, { ref: false });
        continue;
      }
      this.#ended = this.#ended.slice(ended.length);
      this.#unsent = this.#unsent.slice(unsent.length);
      if (ended.length > 0) written(ended);
    }
  }

  #toShow(): DeliveryWrite[] {
    const before = performance.now() - shownAfterMs;
    const due: DeliveryWrite[] = [];
    let waiting = false;
    for (const begun of this.#begun.values()) {
      if (begun.shown) continue;
      if (begun.since > before) waiting = true;
      else {
        begun.shown = true;
        due.push(begun.write);
      }
    }
    if (waiting) {
      this.#showTimer ??= setTimeout(() => {
        this.#showTimer = undefined;
        this.#go();
      }, shownAfterMs).unref();
    }
    return due;
  }
}
