// Reading operations: Parts 2 to 4, wire-computers section 9.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import type { Operation } from '@cubicle/contract/resources/operations.ts';
import type { Database } from '../db/database.ts';
import * as store from '../db/operations.ts';
import type { Authority } from './authority.ts';
import type { Lifecycle } from './lifecycle.ts';

export interface PageWish {
  readonly computerId: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** How many unfinished operations of a page are brought up to date (Part 4 Operations). */
const refreshed = 5;
/** A host that is slower leaves its clones as last observed. */
const askMs = 5_000;

export class Operations {
  readonly #database: Database;
  readonly #lifecycle: Lifecycle;

  constructor(database: Database, lifecycle: Lifecycle) {
    this.#database = database;
    this.#lifecycle = lifecycle;
  }

  async list(
    authority: Authority,
    wish: PageWish,
  ): Promise<{ operations: Operation[]; next_cursor: string | null }> {
    const computerId = wish.computerId ?? null;
    const before = await this.#position(authority, wish.cursor);
    let rows: store.OperationRow[];
    if (wish.idempotencyKey === undefined) {
      // One more than asked for tells whether there is a next page.
      const most = wish.limit + 1;
      rows = await store.listOperations(this.#database, authority, { computerId, before, most });
    } else {
      const { idempotencyKey } = wish;
      rows = await store.findOperationByKey(this.#database, authority, idempotencyKey, computerId);
    }
    const page = rows.slice(0, wish.limit);
    const next = rows.length > wish.limit ? (page.at(-1)?.id ?? null) : null;
    const unfinished = page.filter(({ state }) => state === 'pending' || state === 'running');
    const asked = new Set(unfinished.slice(0, refreshed).filter(isCopying));
    const operations = await Promise.all(
      page.map(async (row) =>
        operationOf(asked.has(row) ? await this.#fresh(authority, row) : row),
      ),
    );
    return { operations, next_cursor: next };
  }

  async get(authority: Authority, id: string): Promise<Operation> {
    const row = isId('operation', id)
      ? await store.findOperation(this.#database, authority, id)
      : undefined;
    if (row === undefined) throw new Refusal('operation_unknown');
    return operationOf(isCopying(row) ? await this.#fresh(authority, row) : row);
  }

  /** Asks the host of a clone how it is; one that does not answer leaves it as last observed. */
  async #fresh(authority: Authority, row: store.OperationRow): Promise<store.OperationRow> {
    await this.#lifecycle.resume(row, askMs);
    return (await store.findOperation(this.#database, authority, row.id)) ?? row;
  }

  async #position(authority: Authority, cursor: string | undefined): Promise<number | null> {
    if (cursor === undefined) return null;
    const row = await store.findOperation(this.#database, authority, cursor);
    if (row === undefined) throw new Refusal('cursor_unknown');
    return row.seq;
  }
}

function isCopying({ kind, state }: store.OperationRow): boolean {
  return kind === 'clone' && state === 'running';
}

function operationOf(row: store.OperationRow): Operation {
  return {
    id: row.id,
    kind: row.kind,
    computer_id: row.computer_id,
    state: row.state,
    error:
      row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
    idempotency_key: row.idempotency_key,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}
