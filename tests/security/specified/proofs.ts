// What several operations prove of the records.

import assert from 'node:assert/strict';
import type { Statement } from '../../../packages/server/db/database.ts';
import type { Caller } from '../callers.ts';

export async function ids(
  { service }: Caller['world'],
  statement: Statement,
  values: readonly unknown[],
): Promise<string[]> {
  return idsIn(await service.database.run<{ id: string }>(statement, values));
}

export function idsIn(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

export async function assertRevoked({ world }: Caller, raw: string): Promise<void> {
  const { status, body } = await world.service.as(raw).get('/whoami');
  assert.deepEqual([status, body.reason], [401, 'revoked']);
}
