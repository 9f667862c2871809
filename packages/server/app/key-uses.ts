// When a key was last used: noted in memory, written in batches, exact to the minute.

import type { Database } from '../db/database.ts';
import { noteKeyUses } from '../db/api-keys.ts';

const minuteMs = 60_000;
/** Beyond this the notes are dropped and begun anew: a use may then be written twice, never lost. */
const mostNoted = 100_000;

export class KeyUses {
  readonly #database: Database;
  readonly #now: () => number;
  /** When each key's use was last noted by this process. */
  readonly #noted = new Map<string, number>();
  #pending = new Map<string, Date>();
  #writing: Promise<void> = Promise.resolve();

  constructor(database: Database, now: () => number = Date.now) {
    this.#database = database;
    this.#now = now;
  }

  note(keyId: string): void {
    const now = this.#now();
    const noted = this.#noted.get(keyId);
    if (noted !== undefined && now - noted < minuteMs) return;
    if (this.#noted.size >= mostNoted) this.#noted.clear();
    this.#noted.set(keyId, now);
    this.#pending.set(keyId, new Date(now));
  }

  /** One after the other: whoever waits for a write knows that what was noted before it is written. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(
      () => this.#write(),
      () => this.#write(),
    );
    return this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const pending = this.#pending;
    this.#pending = new Map();
    try {
      await noteKeyUses(this.#database, pending);
    } catch (error) {
      for (const [keyId, at] of pending) {
        if (!this.#pending.has(keyId)) this.#pending.set(keyId, at);
      }
      throw error;
    }
  }
}
