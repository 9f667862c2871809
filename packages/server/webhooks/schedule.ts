// When a failed delivery is tried again (Part 6.1 rule 2).

import { limits } from '@cubicle/contract/limits.ts';

/** After attempts 1 to 7, in milliseconds: 30 s, 2 min, 10 min, 30 min, 1 h, 4 h, 8 h. */
export const usualWaits: readonly number[] = [30, 120, 600, 1_800, 3_600, 14_400, 28_800].map(
  (seconds) => seconds * 1_000,
);

/** What failed together is not tried again together: up to a twentieth later, and at most this much. */
const mostJitterMs = 15_000;

/** How long to wait after this many attempts; undefined when that was the last one. */
export function waitAfter(
  attempts: number,
  waits: readonly number[],
  retryAfterMs = 0,
  random: () => number = Math.random,
): number | undefined {
  const wait = attempts < limits.webhookAttempts ? waits[attempts - 1] : undefined;
  if (wait === undefined) return undefined;
  const jitter = Math.min(wait / 20, mostJitterMs) * random();
  return Math.max(wait + jitter, retryAfterMs);
}
