// What every error answer must look like.

import assert from 'node:assert/strict';
import type { Answer } from './client.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function assertRequestId(answer: Answer): string {
  const id = answer.headers['x-request-id'];
  assert.match(id ?? '', uuid);
  return id ?? '';
}

/** Exactly this status and reason, a sentence, our correlation, and no field but these. */
export function assertRefused(
  answer: Answer,
  status: number,
  reason?: string,
  further: Readonly<Record<string, unknown>> = {},
): void {
  assert.equal(answer.status, status, answer.text);
  const { error, request_id, ...rest } = answer.body;
  assert.equal(typeof error, 'string');
  assert.ok(error.length > 0);
  assert.equal(request_id, assertRequestId(answer));
  assert.deepEqual(rest, reason === undefined ? further : { reason, ...further });
}

/** The rate headers are there, whole numbers, and make sense. */
export function assertMetered(answer: Answer): { limit: number; remaining: number; reset: number } {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => {
    const value = answer.headers[`ratelimit-${name}`];
    assert.match(value ?? 'absent', /^\d+$/, `RateLimit-${name} of ${answer.status}`);
    return Number(value);
  }) as [number, number, number];
  assert.ok(remaining <= limit);
  return { limit, remaining, reset };
}

export function assertUnmetered(answer: Answer): void {
  for (const name of ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset', 'retry-after']) {
    assert.equal(answer.headers[name], undefined, `${name} on ${answer.status}`);
  }
}
