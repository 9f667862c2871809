// Makes a picture smaller. Every pixel is the average of the area that it covers, so that text stays
// legible; areas meet in the middle of pixels, which count for both by their share.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { channels, type Picture, type Size } from './picture.ts';
import { Slices } from './slices.ts';

/** Which pixels of a line make up each pixel of a shorter one: `count` from `first`, by their weights. */
interface Shares {
  readonly first: Int32Array;
  /** Those of one pixel add up to `whole`. */
  readonly weights: Int32Array;
  readonly count: number;
}

/** A byte weighed by both directions stays below 31 bits; whole numbers are twice as fast as others. */
const wholeBits = 11;
const whole = 1 << wholeBits;
const half = 1 << (2 * wholeBits - 1);

/** Neither side may grow. */
export async function resize(context: Context, picture: Picture, size: Size): Promise<Picture> {
  if (size.width > picture.width || size.height > picture.height) {
    throw new RangeError('a picture does not grow');
  }
  if (size.width === picture.width && size.height === picture.height) return picture;
  const slices = new Slices(context);
  const across = sharesOf(picture.width, size.width);
  const down = sharesOf(picture.height, size.height);
  const pixels = Buffer.allocUnsafeSlow(size.width * size.height * channels);
  const sums = new Int32Array(picture.width * channels);
  const halved = picture.width === 2 * size.width && picture.height === 2 * size.height;
  for (let row = 0; row < size.height; row += 1) {
    if (halved) {
      halveRow(picture, row, pixels);
    } else {
      sumRows(picture, down, row, sums);
      averageRow(sums, across, pixels, row * size.width * channels);
    }
    await slices.step();
  }
  return { ...size, pixels };
}

function sharesOf(from: number, to: number): Shares {
  const ratio = from / to;
  // One more than the ratio where pixels are shared; a whole ratio shares none.
  const count = Math.min(from, Number.isInteger(ratio) ? ratio : Math.ceil(ratio) + 1);
  const first = new Int32Array(to);
  const weights = new Int32Array(to * count);
  for (let i = 0; i < to; i += 1) {
    const start = i * ratio;
    const end = (i + 1) * ratio;
    // The last weights may be 0; they must not reach beyond the line.
    const at = Math.min(Math.floor(start), from - count);
    first[i] = at;
    // Each ends where all before it, rounded together, have brought the sum.
    let given = 0;
    for (let j = 0; j < count; j += 1) {
      const covered = Math.min(Math.max(at + j + 1 - start, 0), end - start);
      const due = j === count - 1 ? whole : Math.round((covered / ratio) * whole);
      weights[i * count + j] = due - given;
      given = due;
    }
  }
  return { first, weights, count };
}

/** The rows that make up one row of the result, weighed and added. */
function sumRows({ pixels }: Picture, down: Shares, row: number, sums: Int32Array): void {
  const length = sums.length;
  const at = (down.first[row] as number) * length;
  const weightOf = (j: number) => down.weights[row * down.count + j] as number;
  const first = weightOf(0);
  for (let i = 0; i < length; i += 1) sums[i] = Math.imul(first, pixels[at + i] as number);
  for (let j = 1; j < down.count; j += 1) {
    const weight = weightOf(j);
    if (weight === 0) continue;
    const from = at + j * length;
    for (let i = 0; i < length; i += 1) {
      sums[i] = (sums[i] as number) + Math.imul(weight, pixels[from + i] as number);
    }
  }
}

/** Half of both sides: half of a usual screen is what is asked for most, and this takes a third. */
function halveRow({ pixels, width }: Picture, row: number, to: Buffer): void {
  const length = width * channels;
  const above = 2 * row * length;
  for (let i = 0, out = (row * length) / 2; i < length; i += 2 * channels, out += channels) {
    for (let colour = 0; colour < channels; colour += 1) {
      const at = above + i + colour;
      to[out + colour] =
        ((pixels[at] as number) +
          (pixels[at + channels] as number) +
          (pixels[at + length] as number) +
          (pixels[at + length + channels] as number) +
          2) >>
        2;
    }
  }
}

function averageRow(sums: Int32Array, across: Shares, pixels: Buffer, out: number): void {
  const { first, weights, count } = across;
  for (let i = 0, to = out; i < first.length; i += 1, to += channels) {
    let red = half;
    let green = half;
    let blue = half;
    for (let j = 0, at = (first[i] as number) * channels; j < count; j += 1, at += channels) {
      const weight = weights[i * count + j] as number;
      red += Math.imul(weight, sums[at] as number);
      green += Math.imul(weight, sums[at + 1] as number);
      blue += Math.imul(weight, sums[at + 2] as number);
    }
    pixels[to] = red >> (2 * wholeBits);
    pixels[to + 1] = green >> (2 * wholeBits);
    pixels[to + 2] = blue >> (2 * wholeBits);
  }
}
