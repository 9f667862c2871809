// Which bytes of a file a Range header means (wire-guest section 9).

import type { FileRange } from './messages.ts';

export interface Window {
  readonly start: number;
  readonly length: number;
}

/**
 * A whole file beyond `most` is too large; a range beyond it is cut, and keeps the end it was anchored to.
 * `range`: no byte of the file is meant.
 */
export function resolveRange(
  size: number,
  asked: FileRange | null,
  most: number,
): Window | 'too_large' | 'range' {
  if (asked === null) return size > most ? 'too_large' : { start: 0, length: size };
  if ('suffix' in asked) {
    const length = Math.min(asked.suffix, size, most);
    return length === 0 ? 'range' : { start: size - length, length };
  }
  const last = Math.min(asked.last ?? Infinity, size - 1);
  if (asked.first > last) return 'range';
  return { start: asked.first, length: Math.min(last - asked.first + 1, most) };
}
