// Names that the X server gives numbers. We ask only for names of our own choosing, so the cache is small.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from './connection.ts';
import { pair, request } from './request.ts';

/** Those that every server knows by the same number. */
export const predefined = {
  PRIMARY: 1,
  ATOM: 4,
  CARDINAL: 6,
  INTEGER: 19,
  STRING: 31,
  WINDOW: 33,
  WM_NAME: 39,
  WM_CLASS: 67,
  WM_TRANSIENT_FOR: 68,
} as const;

const known = new WeakMap<Connection, Map<string, number>>();

export async function atoms<const Name extends string>(
  context: Context,
  connection: Connection,
  names: readonly Name[],
): Promise<Record<Name, number>> {
  const cache = known.get(connection) ?? new Map<string, number>();
  known.set(connection, cache);
  const missing = names.filter((name) => !cache.has(name));
  await Promise.all(
    missing.map(async (name) => {
      const bytes = Buffer.from(name, 'latin1');
      const intern = request(16, 0, pair(bytes.length, 0), bytes);
      cache.set(name, await connection.ask(context, intern, (reply) => reply.readUInt32LE(8), 32));
    }),
  );
  return Object.fromEntries(names.map((name) => [name, cache.get(name)])) as Record<Name, number>;
}
