// What a caller must be answered, derived from the specification's words on the operation and on the
// caller's state (Part 5 rules 2, 3, 6 and 7; Part 8, what is charged).

import assert from 'node:assert/strict';
import {
  assertMetered,
  assertRefused,
  assertRequestId,
  assertUnmetered,
} from '../support/assertions.ts';
import type { Answer } from '../support/client.ts';
import { type Caller, roles, type State } from './callers.ts';
import type { Call, Specified } from './specified/shape.ts';

export interface Outcome {
  readonly status: number;
  readonly reason?: string;
  /** Units taken; undefined where the answer is free and tells nothing of the budget. */
  readonly cost: number | undefined;
  readonly sentence?: RegExp;
  readonly allow?: string;
}

const challenges: Record<string, string> = {
  missing: 'Bearer',
  invalid: 'Bearer error=invalid_token',
  revoked: 'Bearer error=invalid_token',
};

const free = { cost: undefined };
/** Refused before anything else is looked at, and free of charge. */
const beforeMetering: Partial<Record<State, Outcome>> = {
  'no credential': { status: 401, reason: 'missing', ...free },
  'malformed credential': { status: 401, reason: 'invalid', ...free },
  'key revoked': { status: 401, reason: 'revoked', ...free },
  'member removed': { status: 403, reason: 'revoked', ...free },
  'person suspended': { status: 403, reason: 'revoked', ...free },
  'seat suspended': { status: 403, reason: 'revoked', ...free },
};

export function outcomeOf({ world, holder, key }: Caller, stated: Specified, call: Call): Outcome {
  const { state } = world;
  const unmetered = beforeMetering[state];
  if (unmetered !== undefined) return unmetered;
  // At the door.
  const tooLow = roles.indexOf(holder.role) < roles.indexOf(stated.role);
  const outOfReach = key.confinedTo !== null && stated.confinedKeys === 'refused';
  if (tooLow || outOfReach) return { status: 403, cost: 1 };
  // After the whole cost was taken.
  const { cost } = stated;
  if (state === 'account suspended' && stated.whileSuspended === 'refused') {
    return { status: 403, reason: 'revoked', cost };
  }
  if (state === 'e-mail unverified' && stated.needsVerifiedEmail) {
    return { status: 403, cost, sentence: /^Verify your email before / };
  }
  if (call.needsManager === true && !key.manageKeys) return { status: 403, cost };
  return { status: stated.status, cost };
}

/** A path that matches nothing, or a method that it does not take: one unit, whoever asks. */
export function outcomeAtTheDoor({ world }: Caller, status: 404 | 405, allow?: string): Outcome {
  return (
    beforeMetering[world.state] ?? {
      status,
      cost: 1,
      ...(allow === undefined ? undefined : { allow }),
    }
  );
}

/** Everything the answer tells, but for the body of a success and that of a HEAD. */
export function assertOutcome(answer: Answer, outcome: Outcome, method: string): void {
  const { status, reason, cost } = outcome;
  if (method === 'HEAD') {
    assert.equal(answer.status, status);
    assert.equal(answer.text, '', 'a body on HEAD');
  } else if (status >= 400) {
    assertRefused(answer, status, reason);
    assert.match(answer.body.error, outcome.sentence ?? /^[A-Z].*\.$/s);
    if (outcome.sentence === undefined) assert.doesNotMatch(answer.body.error, /Verify your email/);
  } else {
    assert.equal(answer.status, status, answer.text);
  }
  assertRequestId(answer);
  assert.equal(
    answer.headers['www-authenticate'],
    status === 401 ? challenges[reason ?? ''] : undefined,
  );
  assert.equal(answer.headers['allow'], outcome.allow);
  if (cost === undefined) assertUnmetered(answer);
  else assertCharged(answer, cost);
}

/** A single key may spend half of what the plan Swarm has (Part 8). */
const keyLimit = 21_600 / 2;

/** Exact for the first call of a fresh key: what the answer is short of the limit, the call cost. */
function assertCharged(answer: Answer, cost: number): void {
  const { limit, remaining } = assertMetered(answer);
  assert.equal(limit, keyLimit, 'the key’s half is what binds');
  assert.equal(limit - remaining, cost, 'units charged');
  assert.equal(answer.headers['retry-after'], undefined);
}
