// The frames of an event stream (Part 6.2, wire-guest section 11), each written once for all who hear it.

import type { EventType } from '@cubicle/contract/events.ts';
import type { Source } from './history.ts';

interface Told {
  readonly at: Date;
  readonly computer: string;
  readonly cursor: string;
}

export function eventFrame(
  type: EventType,
  { at, computer, cursor }: Told,
  seq: number,
  source: Source,
  data: object,
): string {
  return JSON.stringify({ type, at: at.toISOString(), computer, seq, cursor, source, data });
}

/** As a value, since pages of signals carry it too. `oldest`: the oldest cursor held, where anything is. */
export function gap({ at, computer, cursor }: Told, oldest: string | undefined, detail: string) {
  const data = { ...(oldest !== undefined && { oldest_cursor: oldest }), detail };
  return { type: 'gap', at: at.toISOString(), computer, cursor, source: 'daemon', data } as const;
}

export interface Hello {
  readonly computer: string;
  readonly cursor: string;
  readonly ready: boolean;
  readonly events: readonly EventType[];
  readonly windows?: readonly object[];
  readonly watching?: readonly { readonly path: string; readonly armed: boolean }[];
}

export function helloFrame(hello: Hello): string {
  return JSON.stringify({ type: 'hello', ...hello });
}

export function capabilitiesFrame(
  computer: string,
  events: readonly EventType[],
  detail: string,
): string {
  return JSON.stringify({ type: 'capabilities', computer, events, detail });
}

export function closedFrame(detail: string): string {
  return JSON.stringify({ type: 'closed', detail });
}
