// How many bytes a pixel has on the wire (RFC 6143 section 7.4).

import { Unreadable } from './sieve.ts';

export interface Pixels {
  readonly bytes: number;
  /** In Tight a true colour of three bytes leaves out the fourth. */
  readonly tightBytes: number;
}

/** From the sixteen bytes of a PIXEL_FORMAT. */
export function readPixels(format: Buffer): Pixels {
  const bits = format.readUInt8(0);
  if (bits !== 8 && bits !== 16 && bits !== 32) throw new Unreadable('a pixel of odd size');
  const bytes = bits / 8;
  const depth = format.readUInt8(1);
  const trueColour = format.readUInt8(3) !== 0;
  const maxima = [4, 6, 8].map((at) => format.readUInt16BE(at));
  const short = bits === 32 && depth === 24 && trueColour && maxima.every((most) => most === 255);
  return { bytes, tightBytes: short ? 3 : bytes };
}
