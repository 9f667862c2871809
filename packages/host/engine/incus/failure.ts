/** Puts what Incus says about a failure into the kinds that the engine's callers know. */
import { EngineError } from '../engine.ts';

/**
 * Incus is away for a moment: starting, restarting, or gone in the middle of an answer. What was asked
 * may or may not have happened, so whoever can repeat it does.
 */
export class Away extends EngineError {
  constructor(message: string, cause?: unknown) {
    super('failed', message, cause);
  }
}

// Incus has no codes for these; the words are those of Incus 6.0, LXC 5.0 and the kernel.
const words: readonly [EngineError['kind'] | 'away', RegExp][] = [
  ['away', /isn't ready yet|is shutting down|Failed to begin transaction|database is locked/i],
  // It looked at every interface of the machine, and one of somebody else's went away meanwhile.
  ['away', /device "[^"]+" does not exist/i],
  // Another client's change, or one of ours whose caller has stopped waiting.
  ['busy', /is busy running|instance busy|already being|create operation.*in progress|is locked/i],
  // Asked for only when it is not so: the instance is between two states, as after a guest's own shutdown.
  ['busy', /(instance|container) (is|is already|isn't) (running|stopped|frozen)|invalid pid/i],
  ['busy', /UNIQUE constraint/],
  ['room', /no space left|disk quota exceeded|not enough (free )?space|cannot allocate memory/i],
  [
    'absent',
    /^(instance|image) not found$|failed to fetch instance .*not found|image not provided/i,
  ],
];

export function failureOf(status: number, sentence: string): EngineError {
  if (status === 404) return new EngineError('absent', sentence);
  if (status === 503 || status === 502) return new Away(sentence);
  const kind = words.find(([, pattern]) => pattern.test(sentence))?.[0] ?? 'failed';
  return kind === 'away' ? new Away(sentence) : new EngineError(kind, sentence);
}
