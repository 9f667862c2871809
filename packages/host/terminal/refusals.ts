// Why an upgrade to a terminal is refused (Part 4, Terminal socket), as the error body says it.

import type { Refusal } from '@cubicle/contract/guest/messages.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { type Failed, failed } from '../guest/result.ts';

export interface TerminalRefusal {
  readonly ok: false;
  readonly status: 409 | 502 | 503;
  readonly reason?: 'unavailable' | 'starting' | 'contention';
  readonly resumeRequired?: true;
  readonly message: string;
}

type Stated = Omit<TerminalRefusal, 'ok'>;
const refuse = (stated: Stated): TerminalRefusal => ({ ok: false, ...stated });

export const suspended = refuse({
  status: 409,
  reason: 'unavailable',
  resumeRequired: true,
  message: 'The computer is suspended. Start it and connect again.',
});
export const notRunning = refuse({
  status: 409,
  reason: 'unavailable',
  message: 'The computer is not running.',
});
const starting = refuse({
  status: 409,
  reason: 'starting',
  message: 'The computer is still starting.',
});
const tooManySessions = refuse({
  status: 409,
  message: `The computer already has ${limits.terminalSessions} terminal sessions.`,
});
const tooManyAttached = refuse({
  status: 409,
  message: `The computer already has ${limits.terminalAttachments} terminals attached.`,
});
const settingUp = refuse({
  status: 503,
  reason: 'contention',
  message: 'The computer cannot set up a terminal at the moment.',
});
export const unreachable = refuse({
  status: 502,
  message: 'The computer’s terminal cannot be reached.',
});

/** What the agent may say of a terminal; anything else is a terminal that cannot be reached. */
export function refusedTerminal({ reason, detail }: Refusal): Failed {
  if (reason === 'too_many') return failed('too_many', detail);
  // Asked to make no session, since there is no place to attach to one.
  if (reason === 'absent') return failed('unsupported', detail);
  if (reason === 'busy' || reason === 'no_room') return failed('busy', detail);
  return failed('broken', detail);
}

export function refusalFor({ failure }: Failed, isStarting: boolean): TerminalRefusal {
  if (failure === 'too_many') return tooManySessions;
  if (failure === 'unsupported') return tooManyAttached;
  if (failure === 'busy') return settingUp;
  return failure === 'no_agent' && isStarting ? starting : unreachable;
}
