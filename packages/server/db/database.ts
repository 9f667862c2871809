// The connection pool: named statements, transactions, and what counts as a store that is away.

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { Refusal } from '@cubicle/contract/errors.ts';

export type Values = readonly unknown[];

/** A place to run statements: the pool, or one transaction. */
export interface Runner {
  run<Row extends object>(statement: Statement, values: Values): Promise<Row[]>;
}

/** A statement is prepared once per connection under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** The row of a statement that always answers with one. */
export function only<Row>(rows: readonly Row[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Error('a statement that answers with one row gave none');
  return row;
}

let unnamed = 0;

export function sql(text: string): Statement {
  unnamed += 1;
  return { name: `s${unnamed}`, text };
}

const ping = sql('SELECT 1');

const types: pg.CustomTypesConfig = {
  // Counts and byte sums stay far below 2^53.
  getTypeParser: ((oid: number, format: 'text') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)) as never,
};

export type ConnectionOptions = Pick<
  pg.ClientConfig,
  'connectionString' | 'host' | 'port' | 'user' | 'database'
>;

export class Database implements Runner {
  readonly #pool: pg.Pool;
  readonly connection: ConnectionOptions;

  constructor(connection: ConnectionOptions, most = 20) {
    this.connection = connection;
    this.#pool = new pg.Pool({
      ...connection,
      types,
      max: most,
      connectionTimeoutMillis: 5_000,
      // Plans are kept per connection; a new one now and then sees what the tables have become.
      maxLifetimeSeconds: 600,
      statement_timeout: 10_000,
      // The server's own timeout is of no use when the server itself stands still.
      query_timeout: 12_000,
      idle_in_transaction_session_timeout: 30_000,
      application_name: 'cubicle',
    });
    // An idle connection that breaks is replaced at its next use; the error is told there.
    this.#pool.on('error', () => {});
  }

  async run<Row extends object>(statement: Statement, values: Values): Promise<Row[]> {
    return storeAnswer(async () => {
      const answer = await this.#pool.query<Row>({ ...statement, values: [...values] });
      return answer.rows;
    });
  }

  /** READ COMMITTED; what `work` throws rolls everything back. */
  async transaction<Result>(work: (tx: Runner) => Promise<Result>): Promise<Result> {
    return storeAnswer(async () => {
      const client = await this.#pool.connect();
      let broken: Error | undefined;
      // The pool listens to idle connections only; without a listener a break would end the process.
      const onBreak = (error: Error) => {
        broken = error;
      };
      client.on('error', onBreak);
      try {
        await client.query('BEGIN');
        const result = await work({
          run: async <Row extends object>(statement: Statement, values: Values) =>
            (await client.query<Row>({ ...statement, values: [...values] })).rows,
        });
        await client.query('COMMIT');
        return result;
      } catch (error) {
        // A connection that does not answer is thrown away, which rolls back as well.
        if (isAway(error)) broken = error as Error;
        else await client.query('ROLLBACK').catch(onBreak);
        throw error;
      } finally {
        client.off('error', onBreak);
        client.release(broken);
      }
    });
  }

  async alive(): Promise<boolean> {
    return this.run(ping, []).then(
      () => true,
      () => false,
    );
  }

  get idle(): number {
    return this.#pool.idleCount;
  }

  get total(): number {
    return this.#pool.totalCount;
  }

  get waiting(): number {
    return this.#pool.waitingCount;
  }

  async close(): Promise<void> {
    await orGiveUp(this.#pool.end());
  }
}

/** A server that stands still does not say goodbye; what is left of the connection ends with the process. */
export async function orGiveUp(ending: Promise<void>): Promise<void> {
  const patience = new AbortController();
  const pause = setTimeout(goodbyeMs, undefined, { signal: patience.signal });
  await Promise.race([ending, pause.catch(() => {})]);
  patience.abort();
}

const goodbyeMs = 5_000;

/** The name of the constraint that a write violated, where there is one. */
export function violated(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code?.startsWith('23')
    ? error.constraint
    : undefined;
}

async function storeAnswer<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isAway(error)) {
      const refusal = new Refusal('store_unavailable');
      refusal.cause = error;
      throw refusal;
    }
    throw error;
  }
}

/** Connection lost or refused (08), out of resources (53), cancelled or shut down (57), deadlock or serialisation (40). */
const awayClasses = new Set(['08', '28', '3D', '40', '53', '55', '57']);

function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return awayClasses.has(error.code?.slice(0, 2) ?? '');
  if (!(error instanceof Error)) return false;
  // `EAI_AGAIN` as well: its name cannot be looked up for now.
  if ('code' in error && typeof error.code === 'string' && /^E(AI_)?[A-Z]+$/.test(error.code))
    return true;
  // The pool and the client tell these without a code.
  return /connection|timeout|not queryable|Cannot use a pool/i.test(error.message);
}
