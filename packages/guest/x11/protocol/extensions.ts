// Extensions of the X server, each by the number that this server has given it.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from './connection.ts';
import { pair, request } from './request.ts';
import { DisplayError } from '../../desktop/trouble.ts';

export interface Extension {
  readonly opcode: number;
  readonly firstEvent: number;
}

const known = new WeakMap<Connection, Map<string, Extension>>();

export async function extension(
  context: Context,
  connection: Connection,
  name: 'XTEST' | 'XFIXES',
): Promise<Extension> {
  const cache = known.get(connection) ?? new Map<string, Extension>();
  known.set(connection, cache);
  const before = cache.get(name);
  if (before !== undefined) return before;
  const bytes = Buffer.from(name, 'latin1');
  const query = request(98, 0, pair(bytes.length, 0), bytes);
  const found = await connection.ask(context, query, (reply) => ({
    present: reply.readUInt8(8) === 1,
    opcode: reply.readUInt8(9),
    firstEvent: reply.readUInt8(10),
  }));
  if (!found.present) throw new DisplayError('refused', `the display has no ${name}`);
  cache.set(name, found);
  return found;
}
