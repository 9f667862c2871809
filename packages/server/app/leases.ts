// What this process is working on, of rows that any process may go on with when their holder is gone.

import type { Database } from '../db/database.ts';
import type { LeasedTable } from '../db/leases.ts';

/** A quarter of the time that a row is held for. */
export const renewMs = 2_500;
const mostAtOnce = 10;

export class Leases<Row extends { readonly id: string }> {
  readonly #database: Database;
  readonly #table: LeasedTable<Row>;
  readonly #held = new Set<string>();

  constructor(database: Database, table: LeasedTable<Row>) {
    this.#database = database;
    this.#table = table;
  }

  get held(): string[] {
    return [...this.#held];
  }

  hold(id: string): void {
    this.#held.add(id);
  }

  letGo(id: string): void {
    this.#held.delete(id);
  }

  async renew(): Promise<void> {
    if (this.#held.size > 0) await this.#table.renew(this.#database, this.held);
  }

  /** A process that stood still for longer than it holds them has not lost those that it works on. */
  async takeUp(): Promise<Row[]> {
    const taken = await this.#table.takeUp(this.#database, mostAtOnce);
    return taken.filter(({ id }) => !this.#held.has(id));
  }
}
