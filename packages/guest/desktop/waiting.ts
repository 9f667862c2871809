// Waiting that ends: with its caller, or when time is up.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { DisplayError } from './trouble.ts';

/** Nobody gives up on letting go; a desktop that does not answer is lost by itself. */
export const always: Context = { signal: new AbortController().signal };

export async function pause({ signal }: Context, ms: number): Promise<void> {
  signal.throwIfAborted();
  // Why the caller left is told, and not only that.
  await sleep(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** Does `work` with a deadline of its own besides its caller's. */
export async function within<Result>(
  { signal }: Context,
  ms: number,
  late: string,
  work: (context: Context) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(new DisplayError('silent', late)), ms);
  const leave = () => ending.abort(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await work({ signal: ending.signal });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  }
}

const pollMs = 15;
const mostOfOneMs = 60;

/**
 * Looks until it is so; false when that takes longer than `ms`. Between two looks no more than a moment counts:
 * a machine that stood still for a second has given nobody a second.
 */
export async function becomes(
  context: Context,
  ms: number,
  look: () => Promise<boolean>,
): Promise<boolean> {
  let waited = 0;
  for (let last = performance.now(); !(await look());) {
    if (waited > ms) return false;
    await pause(context, pollMs);
    const now = performance.now();
    waited += Math.min(now - last, mostOfOneMs);
    last = now;
  }
  return true;
}

/** Work that is done one after the other, each in its turn. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  async take<Result>(context: Context, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last;
    const done = Promise.withResolvers<void>();
    this.#last = before.then(() => done.promise);
    try {
      await unlessAborted(context, before);
      return await work();
    } finally {
      done.resolve();
    }
  }
}
