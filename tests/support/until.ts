// Waiting for a condition. The deadlines tell a hang from a slow machine and nothing else.

import { setTimeout as pause } from 'node:timers/promises';

const hangMs = 90_000;
const pollMs = 10;

/** Answers the first value that is neither false nor undefined; what throws does not hold yet. */
export async function until<Value>(
  what: string,
  look: () => Value | false | undefined | Promise<Value | false | undefined>,
): Promise<Value> {
  const deadline = performance.now() + hangMs;
  let failure: unknown;
  while (performance.now() < deadline) {
    try {
      const value = await look();
      if (value !== false && value !== undefined) return value;
      failure = undefined;
    } catch (error) {
      failure = error;
    }
    await pause(pollMs);
  }
  throw new Error(`waited in vain until ${what}`, { cause: failure });
}

/** Fails when `work` does not come to an end. */
export async function unhung<Value>(what: string, work: Promise<Value>): Promise<Value> {
  const ending = new AbortController();
  const hang = pause(hangMs, undefined, { signal: ending.signal }).then(() => {
    throw new Error(`hangs: ${what}`);
  });
  try {
    return await Promise.race([work, hang]);
  } finally {
    ending.abort();
    hang.catch(() => {});
  }
}
