// What the database holds, to prove that a refusal changed nothing and a success nothing else.

import assert from 'node:assert/strict';
import { sql, type Statement } from '../../packages/server/db/database.ts';
import type { TestService } from '../support/service.ts';

/** Written by reads and refusals too: what was spent, when a key was last used, who reads hosts’ events and builds. */
const beside = ['rate_budgets', 'api_key_uses', 'event_readers', 'build_streams'];

const listTables = sql(`
  SELECT table_name AS name FROM information_schema.tables
  WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> ALL($1)
  ORDER BY table_name`);

/** A hash per table, over all of its rows. */
export type Contents = Record<string, string>;

export class Tables {
  readonly #service: TestService;
  readonly #statement: Statement;

  private constructor(service: TestService, statement: Statement) {
    this.#service = service;
    this.#statement = statement;
  }

  static async of(service: TestService): Promise<Tables> {
    const tables = await service.database.run<{ name: string }>(listTables, [beside]);
    assert.ok(tables.length >= 6, 'the tables of the service');
    const hashes = tables.map(
      ({ name }) =>
        `(SELECT concat(count(*), ':', sum(hashtextextended(t::text, 0))) FROM "${name}" t) AS "${name}"`,
    );
    return new Tables(service, sql(`SELECT ${hashes.join(', ')}`));
  }

  async read(): Promise<Contents> {
    const [contents] = await this.#service.database.run<Contents>(this.#statement, []);
    assert.ok(contents);
    return contents;
  }
}

/** The names of the tables that differ, in order. */
export function changed(before: Contents, after: Contents): string[] {
  return Object.keys(after).filter((table) => before[table] !== after[table]);
}

const spent = sql(`
  SELECT bucket FROM rate_budgets
  WHERE bucket = $1 OR bucket IN (SELECT id FROM api_keys WHERE account_id = $1)
    OR bucket = ANY($2)`);

/** Neither the account nor any of these keys was ever charged. */
export async function assertNothingSpent(
  service: TestService,
  accountId: string,
  keyIds: readonly string[],
): Promise<void> {
  assert.deepEqual(await service.database.run(spent, [accountId, keyIds]), []);
}
