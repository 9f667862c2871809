// What stands behind a socket's credential: the computer, and the key it was given to.

import type { Role } from '@cubicle/contract/route.ts';
import { type Database, sql } from './database.ts';
import { gathered } from './gather.ts';

export interface SocketGrant {
  host_id: string;
  account_id: string;
  user_id: string;
  rotation: number;
  computer_state: string;
  /** Nothing of these when the key is gone, belongs elsewhere, or its holder was removed. */
  role: Role | null;
  /** The account, the person or the seat. */
  suspended: boolean | null;
}

export interface SocketClaim {
  readonly computerId: string;
  readonly keyId: string;
}

// A row for each claim on a computer there is or was, whatever became of the key.
const find = sql(`
  SELECT asked.place::int, c.host_id, c.account_id, c.rotation, c.state AS computer_state,
    k.user_id, m.role, a.suspended OR u.suspended OR m.seat_suspended AS suspended
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked(computer, key, place)
  JOIN computers c ON c.id = asked.computer
  JOIN accounts a ON a.id = c.account_id
  LEFT JOIN api_keys k ON k.id = asked.key AND k.account_id = c.account_id
    AND (k.workspace_id IS NULL OR k.workspace_id = c.workspace_id)
  LEFT JOIN users u ON u.id = k.user_id
  LEFT JOIN members m ON m.account_id = k.account_id AND m.user_id = k.user_id`);

/** Undefined when there never was such a computer. */
export function socketGrants(
  database: Database,
): (claim: SocketClaim) => Promise<SocketGrant | undefined> {
  return gathered(async (claims: SocketClaim[]) => {
    const rows = await database.run<SocketGrant & { place: number }>(find, [
      claims.map(({ computerId }) => computerId),
      claims.map(({ keyId }) => keyId),
    ]);
    const found = new Map(rows.map((row) => [row.place, row]));
    return claims.map((_, i) => found.get(i + 1));
  });
}
