// A page of what the host itself saw of a computer (wire-computers section 11): read from memory, the guest
// is not asked. Frames are passed on as they were written.

import { daemonEvents } from '@cubicle/contract/events.ts';
import type { Stream } from './stream.ts';

/** The page's JSON. `since` empty: a baseline. */
export function signalsPage(
  computer: string,
  stream: Stream,
  since: string,
  limit: number,
): string {
  const { history } = stream;
  const head = history.cursor(history.head);
  const rest = { supported: daemonEvents, retention: 'ephemeral' };
  const nothing = { computer, from: head, cursor: head, events: [], more: false };
  if (since === '') return JSON.stringify({ ...nothing, baseline: true, ...rest });
  const position = history.position(since);
  if (position === undefined || position < history.daemonsOldest) {
    const gap = stream.gapNow(
      computer,
      'Signals before this cursor are no longer held. Read what you need to know anew.',
      history.daemonsOldest,
    );
    return JSON.stringify({ ...nothing, baseline: false, gap, ...rest });
  }
  const events = history
    .daemonsFrom(position)
    .take(limit + 1)
    .toArray();
  const more = events.length > limit;
  const page = events.slice(0, limit);
  const last = page.at(-1);
  const cursor = more && last !== undefined ? history.cursor(last.seq + 1) : head;
  const frame = JSON.stringify({
    computer,
    from: since,
    cursor,
    events: [],
    more,
    baseline: false,
    ...rest,
  });
  return frame.replace('"events":[]', () => `"events":[${page.map(({ text }) => text).join()}]`);
}
