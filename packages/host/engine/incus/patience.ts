/** Repeats what may be repeated while Incus is away or another change holds an instance. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Context, EngineError } from '../engine.ts';
import { Away } from './failure.ts';

/**
 * A restart takes 1.9 s; a cluster's member forwards again 3 to 35 s after its own; and a bridge that
 * could not be brought up is tried again by Incus after a minute.
 */
const awayMs = 75_000;
/** The longest change that somebody else may be at: a polite stop. */
const busyMs = 30_000;
const pollMs = { first: 20, most: 500 };

/** `work` looks at what is so before it acts, every time. Nothing is begun for a caller who has left. */
export async function patiently<Result>(
  context: Context,
  work: () => Promise<Result>,
): Promise<Result> {
  const began = performance.now();
  for (let delayMs = pollMs.first; ; delayMs = Math.min(delayMs * 2, pollMs.most)) {
    context.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const waited = performance.now() - began;
      const away = error instanceof Away && waited < awayMs;
      const busy = error instanceof EngineError && error.kind === 'busy' && waited < busyMs;
      if (!away && !busy) throw error;
      await pause(delayMs, undefined, { signal: context.signal }).catch(() => {});
    }
  }
}
