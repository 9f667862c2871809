/** Speaks to the server on its socket: whether it answers, who owns it, and its database. */
import { Client } from 'pg';
import { errorCode } from './error-code.ts';
import { socketPort } from './socket-folder.ts';

/** "CUBICLE" in ASCII. A lock of a session in the database `postgres`: it ends with its process. */
const ownerLock = '18952566624963653';

const connectTimeoutMs = 5_000;

export interface Session {
  readonly client: Client;
  /** Resolves when the connection is closed, by whichever side. */
  readonly ended: Promise<void>;
}

export type Answer =
  | { kind: 'ready'; session: Session }
  /** It answers but takes no connections: starting up, recovering, shutting down, full. */
  | { kind: 'busy'; reason: string }
  | { kind: 'silent' };

export function connectionTo(host: string, database: string) {
  return { host, port: socketPort, user: 'cubicle', database };
}

export async function tryConnect(
  socketFolder: string,
  role: 'service' | 'command' = 'service',
): Promise<Answer> {
  const client = new Client({
    ...connectionTo(socketFolder, 'postgres'),
    // Said outright, so that the PG* variables of the environment do not count.
    ssl: false,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: `cubicle-owner ${role}`,
  });
  // A connection that breaks later says so by `end`.
  client.on('error', () => {});
  const ended = new Promise<void>((resolve) => client.once('end', resolve));
  try {
    await client.connect();
    return { kind: 'ready', session: { client, ended } };
  } catch (error) {
    void client.end().catch(() => {});
    return judgeFailure(error);
  }
}

/** Tells a server that is away or not ready from what waiting does not mend, which it throws. */
export function judgeFailure(error: unknown): Exclude<Answer, { kind: 'ready' }> {
  if (!(error instanceof Error)) throw error;
  switch (errorCode(error)) {
    case '57P01': // admin_shutdown
    case '57P02': // crash_shutdown
    case '57P03': // cannot_connect_now
    case '53300': // too_many_connections
      return { kind: 'busy', reason: error.message };
    // No code is pg's own: the connection ended or timed out before the server was ready.
    case undefined:
    case 'ENOENT':
    case 'ECONNREFUSED':
    case 'ECONNRESET':
    case 'EPIPE':
    case 'EAGAIN': // the socket's backlog is full
      return { kind: 'silent' };
    default:
      throw error;
  }
}

export async function takeOwnerLock(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>(
    'select pg_try_advisory_lock($1::bigint) as taken',
    [ownerLock],
  );
  return rows[0]?.taken === true;
}

/** A service stays; a command ends the server with itself, so others wait for their turn. */
export async function serviceOwns(client: Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and granted and application_name = 'cubicle-owner service'`,
  );
  return rowCount !== 0;
}

export async function ensureDatabase(client: Client): Promise<void> {
  const found = await client.query(`select from pg_database where datname = 'cubicle'`);
  if (found.rowCount !== 0) return;
  try {
    await client.query('create database cubicle');
  } catch (error) {
    // duplicate_database or unique_violation: another process creates it at this moment.
    const code = errorCode(error);
    if (code !== '42P04' && code !== '23505') throw error;
  }
}
