// What most tests of computers do with them.

import assert from 'node:assert/strict';
import { sql } from '../../packages/server/db/database.ts';
import type { Answer, Client } from './client.ts';
import type { TestService } from './service.ts';
import { until } from './until.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests look into answers of any shape
type Body = any;

/** The smallest there is, so that many fit a plan. */
export const small = { cpu: 1, ram_mb: 512 };

export async function made(as: Client, wish: object = {}): Promise<Body> {
  const answer = await as.post('/computers', { ...small, ...wish });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

export async function computer(as: Client, id: string): Promise<Body> {
  const answer = await as.get(`/computers/${id}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

/** `start`, `stop?force=true` and the like. */
export function act(as: Client, id: string, action: string): Promise<Answer> {
  return as.send('POST', `/computers/${id}/${action}`);
}

/** Has happened, without a doubt. */
export async function acted(as: Client, id: string, action: string): Promise<Body> {
  const answer = await act(as, id, action);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

export async function operation(as: Client, id: string): Promise<Body> {
  return (await as.get(`/operations/${id}`)).body;
}

export function finished(as: Client, id: string): Promise<Body> {
  return until('the operation comes to its end', async () => {
    const read = await operation(as, id);
    return read.finished_at === null ? undefined : read;
  });
}

export async function clone(as: Client, id: string, wish: object = {}): Promise<Body> {
  const answer = await as.post(`/computers/${id}/clone`, wish);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** Everything an account has or had, whether anybody sees it or not. */
export async function traces(service: TestService, accountId: string) {
  const count = async (table: string): Promise<number> => {
    const statement = sql(`SELECT count(*)::int AS count FROM ${table} WHERE account_id = $1`);
    return (await service.database.run<{ count: number }>(statement, [accountId]))[0]?.count ?? 0;
  };
  return {
    computers: await count('computers'),
    operations: await count('operations'),
    keys: await count('idempotency_keys'),
    instances: (await service.host.instances()).size,
  };
}

/** Nobody takes the account's unfinished operations up, as long as the test looks at them. */
export async function keepUnfinished(service: TestService, accountId: string): Promise<void> {
  const hold = "UPDATE operations SET held_until = now() + interval '1 hour' WHERE account_id = $1";
  await service.database.run(sql(hold), [accountId]);
}
