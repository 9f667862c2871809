// What every answer must be, whatever it answers: Part 1 rule 2, Part 2 Error, Part 7.

import assert from 'node:assert/strict';
import { errors, type ErrorEntry } from '../../packages/contract/errors.ts';
import type { Route } from '../../packages/contract/route.ts';
import { routes } from '../../packages/contract/routes.ts';
import type { RawAnswer } from './raw-connection.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const registry = Object.values<ErrorEntry>(errors);
/** What the service itself can be at fault for is no answer to anything a caller sends. */
const refusals = registry.filter(({ status }) => status < 500);
const named = new Set([
  ...refusals.map(({ status }) => status),
  ...Object.values<Route>(routes).flatMap(({ answer: { status, also = status } }) => [
    status,
    also,
  ]),
  204, // OPTIONS
  302, // the root, to the reference
  308, // a trailing slash
]);

const challenges: Record<string, string> = {
  missing: 'Bearer',
  invalid: 'Bearer error=invalid_token',
  revoked: 'Bearer error=invalid_token',
};

export interface Asked {
  readonly method: string;
  readonly madeUpIds: readonly string[];
  readonly hostless?: boolean;
}

export class Verdict {
  /** Answers by status. */
  readonly tally = new Map<number, number>();
  readonly #seenIds = new Set<string>();

  /** Fails unless the answer is one that the contract knows. Gives the parsed body, where there is one. */
  hold(answer: RawAnswer, asked: Asked): unknown {
    const { status, all, body } = answer;
    this.tally.set(status, (this.tally.get(status) ?? 0) + 1);
    assert.ok(named.has(status), `status ${status}: ${body.toString('utf8')}`);
    if (status === 308) return holdRedirect(answer);
    if (asked.hostless === true && status === 400 && all('x-request-id').length === 0) {
      return undefined;
    }
    this.#holdRequestId(all('x-request-id'), asked);
    if (status >= 400) return holdError(answer, asked.method === 'HEAD');
    return body.length > 0 && all('content-type')[0]?.startsWith('application/json') === true
      ? JSON.parse(body.toString('utf8'))
      : undefined;
  }

  #holdRequestId(ids: readonly string[], { madeUpIds }: Asked): void {
    const [id = 'none'] = ids;
    assert.equal(ids.length, 1, 'exactly one X-Request-ID');
    assert.match(id, uuid);
    assert.ok(!madeUpIds.includes(id), 'X-Request-ID is the caller’s');
    assert.ok(!this.#seenIds.has(id), 'X-Request-ID was used before');
    this.#seenIds.add(id);
  }
}

/** Part 1 rule 6: without a correlation, to the path without the slash, and never to another site. */
function holdRedirect({ all }: RawAnswer): undefined {
  const [location = 'none'] = all('location');
  assert.deepEqual(all('x-request-id'), []);
  const here = 'http://here.example';
  assert.equal(new URL(location, here).origin, here, `redirected to ${location}`);
  assert.doesNotMatch(location.replace(/\?.*/s, ''), /\/$/);
  return undefined;
}

function holdError({ status, all, body }: RawAnswer, head: boolean): unknown {
  assert.deepEqual(all('content-type'), ['application/json; charset=utf-8']);
  if (status === 405) assert.match(all('allow').join(), /^[A-Z]+(, [A-Z]+)*$/);
  if (status === 429) assert.match(all('retry-after').join(), /^[1-9]\d*$/);
  if (head) {
    assert.equal(body.length, 0);
    return undefined;
  }
  const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  assert.ok(typeof value === 'object' && value !== null);
  const { error, request_id, reason, code, ...rest } = value as Record<string, unknown>;
  assert.ok(typeof error === 'string' && error.length > 0, 'a sentence');
  assert.ok(error.length < 10_000, 'a sentence for a person, not a book');
  assert.equal(request_id, all('x-request-id')[0]);
  assert.deepEqual(rest, {});
  assert.ok(
    refusals.some(
      (entry) => entry.status === status && entry.reason === reason && entry.code === code,
    ),
    `no error of the registry is ${status} with reason ${String(reason)} and code ${String(code)}`,
  );
  if (status === 401) {
    assert.deepEqual(all('www-authenticate'), [challenges[String(reason)]]);
  }
  return value;
}

const unreadable: readonly string[] = [
  errors.request_malformed.sentence,
  errors.headers_too_large.sentence.replace(/\{.*/, ''),
  errors.request_timeout.sentence,
];

/** Said of bytes that are no request; as the answer to a sound one it belongs to somebody else. */
export function saysUnreadable(body: unknown): boolean {
  const error: unknown = (body as { error?: unknown } | undefined)?.error;
  return typeof error === 'string' && unreadable.some((start) => error.startsWith(start));
}
