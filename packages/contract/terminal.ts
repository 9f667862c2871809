// What the terminal socket says (Part 4, Terminal socket): binary frames are terminal bytes, text frames these.

import { limits } from './limits.ts';

/** A session's name: it is a file's name in the guest, where a socket's path has 107 bytes. */
export const sessionPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export interface TerminalRequest extends TerminalSize {
  readonly session: string;
}

/** What the query of an upgrade asks for; nothing when it makes no sense. Other parameters are not ours. */
export function readTerminalQuery(query: URLSearchParams): TerminalRequest | undefined {
  const session = query.get('session') ?? 'main';
  const [cols, rows] = [query.get('cols') ?? '80', query.get('rows') ?? '24'];
  if (!sessionPattern.test(session) || !/^\d{1,9}$/.test(cols) || !/^\d{1,9}$/.test(rows)) {
    return undefined;
  }
  return { session, ...boundedSize(Number(cols), Number(rows)) };
}

export type TerminalFrame =
  | { readonly type: 'exit'; readonly code: number; readonly input_lost?: true }
  | { readonly type: 'error'; readonly message: string; readonly reason?: 'input_overflow' }
  | { readonly type: 'detached'; readonly reason: string };

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** What a client asks for in a text frame; nothing when it is no such frame. */
export function readResize(frame: string): TerminalSize | undefined {
  let value: unknown;
  try {
    value = JSON.parse(frame);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { type, cols, rows } = value as Record<string, unknown>;
  if (type !== 'resize' || !Number.isSafeInteger(cols) || !Number.isSafeInteger(rows)) {
    return undefined;
  }
  return boundedSize(cols as number, rows as number);
}

/** A window that is hidden has no size for a moment; that is no reason to lose a terminal. */
export function boundedSize(cols: number, rows: number): TerminalSize {
  const bounded = (side: number) => Math.min(Math.max(side, 1), limits.terminalSide);
  return { cols: bounded(cols), rows: bounded(rows) };
}
