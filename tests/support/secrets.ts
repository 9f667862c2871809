// Secrets as tests keep and bind them.

import assert from 'node:assert/strict';
import type { Answer, Client } from './client.ts';

let made = 0;

export interface TestSecret {
  readonly id: string;
  readonly revision_id: string;
}

export async function secret(
  as: Client,
  value = 'a value',
  workspace_id?: string,
): Promise<TestSecret> {
  made += 1;
  const answer = await as.post('/secrets', { name: `secret ${made}`, value, workspace_id });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

export async function replaced(as: Client, { id }: TestSecret, value: string): Promise<TestSecret> {
  const { revision_id } = (await as.get(`/secrets/${id}`)).body;
  const answer = await as.put(`/secrets/${id}`, { value, revision_id });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

export async function erased(as: Client, { id }: TestSecret): Promise<void> {
  const { revision_id } = (await as.get(`/secrets/${id}`)).body;
  const answer = await as.delete(`/secrets/${id}?revision_id=${revision_id}`);
  assert.equal(answer.status, 200, answer.text);
}

export function bind(as: Client, id: string, secrets: unknown, version?: number): Promise<Answer> {
  return as.put(`/computers/${id}/secrets`, { secrets, ...(version !== undefined && { version }) });
}

export async function bound(as: Client, id: string, secrets: unknown): Promise<Answer['body']> {
  const answer = await bind(as, id, secrets);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}
