// Asks how the computer is: a browser is not told why a WebSocket was refused.

import type { Place } from './place.ts';
import { type Notice, notices } from './words.ts';

/** Nothing when the desktop can be opened. The credential travels in a header. */
export async function look({ computer, token }: Place): Promise<Notice | undefined> {
  try {
    const answer = await fetch(`/desktop/${encodeURIComponent(computer)}/state`, {
      headers: { authorization: `Bearer ${token}` },
      cache: 'no-store',
    });
    if (answer.ok) return undefined;
    if (answer.status === 404) return notices.unknown;
    if (answer.status !== 409) return notices.reconnecting;
    const { reason, resume_required: asleep } = (await answer.json()) as Record<string, unknown>;
    if (asleep === true) return notices.suspended;
    return reason === 'unavailable' ? notices.stopped : notices.starting;
  } catch {
    return notices.reconnecting;
  }
}
