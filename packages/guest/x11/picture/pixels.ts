// Pixels as the X server has them, made red, green and blue.

import type { PixelFormat } from '../protocol/setup.ts';
import { DisplayError } from '../protocol/trouble.ts';
import { channels } from './picture.ts';

/** Reads `count` pixels. */
export type PixelReader = (
  from: Buffer,
  at: number,
  to: Buffer,
  toAt: number,
  count: number,
) => void;

export function pixelReader(format: PixelFormat): PixelReader {
  const { bitsPerPixel, bigEndian, red, green, blue } = format;
  if (bitsPerPixel === 32) {
    const usual = !bigEndian && red === 0xff0000 && green === 0xff00 && blue === 0xff;
    return usual ? readUsual : readMasked(format, 4);
  }
  if (bitsPerPixel === 16) return readMasked(format, 2);
  throw new DisplayError('refused', `a screen of ${bitsPerPixel} bits a pixel`);
}

/** Blue, green, red and a byte that says nothing: what nearly every screen has. */
function readUsual(from: Buffer, at: number, to: Buffer, toAt: number, count: number): void {
  for (let i = 0, source = at, target = toAt; i < count; i += 1, source += 4, target += channels) {
    to[target] = from[source + 2] as number;
    to[target + 1] = from[source + 1] as number;
    to[target + 2] = from[source] as number;
  }
}

function readMasked({ bigEndian, red, green, blue }: PixelFormat, bytes: 2 | 4): PixelReader {
  const colours = [red, green, blue].map(colourTable);
  return (from, at, to, toAt, count) => {
    for (let i = 0; i < count; i += 1) {
      const pixel = bigEndian
        ? from.readUIntBE(at + i * bytes, bytes)
        : from.readUIntLE(at + i * bytes, bytes);
      for (const [j, { mask, shift, values }] of colours.entries()) {
        to[toAt + i * channels + j] = values[(pixel & mask) >>> shift] as number;
      }
    }
  };
}

/** From a colour's few bits to a byte: its most is 255. */
function colourTable(mask: number): { mask: number; shift: number; values: Uint8Array } {
  const shift = 31 - Math.clz32(mask & -mask);
  const most = mask >>> shift;
  if (mask === 0 || most > 0xffff) throw new DisplayError('refused', 'a screen without colours');
  const values = Uint8Array.from({ length: most + 1 }, (_, i) => Math.round((i * 255) / most));
  return { mask, shift, values };
}
