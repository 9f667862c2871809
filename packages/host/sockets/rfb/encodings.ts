// The encodings a watcher may ask for: those whose length the server's side can be read by. The rest is
// taken out of what its viewer offers, so that the server never sends it.

import type { Pixels } from './pixels.ts';
import { type Step, Unreadable } from './sieve.ts';

export interface Rectangle {
  readonly width: number;
  readonly height: number;
}

type Encoding = (rectangle: Rectangle, pixels: Pixels) => Generator<Step, void, Buffer>;

export const lastRectangle = -224;

const encodings: ReadonlyMap<number, Encoding> = new Map<number, Encoding>([
  // Raw, CopyRect, RRE, Tight, ZRLE.
  [0, ({ width, height }, { bytes }) => through(width * height * bytes)],
  [1, () => through(4)],
  [2, (_, { bytes }) => counted(4, (count) => bytes + count * (bytes + 8))],
  [7, tight],
  [16, () => counted(4, (length) => length)],
  // Of the screen itself: its size, the end of an update, its name, its parts.
  [-223, () => through(0)],
  [lastRectangle, () => through(0)],
  [-307, () => counted(4, (length) => length)],
  [-308, () => counted(1, (screens) => 3 + 16 * screens)],
  // The pointer's picture, with a bit per pixel that says where it is.
  [-239, ({ width, height }, { bytes }) => through(height * (width * bytes + ((width + 7) >> 3)))],
]);

/** Levels of quality and compression are told as encodings, and no rectangle has them. */
function isLevel(encoding: number): boolean {
  return (encoding >= -32 && encoding <= -23) || (encoding >= -256 && encoding <= -247);
}

export function mayWatchWith(encoding: number): boolean {
  return encodings.has(encoding) || isLevel(encoding);
}

/** Passes on the body of a rectangle, whose header is held. */
export function* rectangleBody(
  encoding: number,
  rectangle: Rectangle,
  pixels: Pixels,
): Generator<Step, void, Buffer> {
  const body = encodings.get(encoding);
  if (body === undefined) throw new Unreadable(`an encoding that was not asked for: ${encoding}`);
  yield* body(rectangle, pixels);
}

function* through(length: number): Generator<Step, void, Buffer> {
  yield { pass: length };
}

function* counted(bytes: 1 | 4, length: (count: number) => number): Generator<Step, void, Buffer> {
  const count = (yield { read: bytes }).readUIntBE(0, bytes);
  yield { pass: length(count) };
}

/** The Tight encoding, as the community's RFB document has it. */
function* tight(
  { width, height }: Rectangle,
  { tightBytes }: Pixels,
): Generator<Step, void, Buffer> {
  const control = (yield { read: 1 }).readUInt8(0) >> 4;
  if (control === 8) {
    yield* through(tightBytes);
    return;
  }
  if (control === 9) {
    yield* compact();
    return;
  }
  if (control > 7) throw new Unreadable('a kind of Tight that was not asked for');
  let bitsPerRow = width * tightBytes * 8;
  // Without the bit that names a filter the pixels are sent as they are.
  const filter = (control & 4) === 0 ? 0 : (yield { read: 1 }).readUInt8(0);
  if (filter === 1) {
    const colours = (yield { read: 1 }).readUInt8(0) + 1;
    yield { pass: colours * tightBytes };
    bitsPerRow = width * (colours <= 2 ? 1 : 8);
  } else if (filter > 2) throw new Unreadable('a filter of Tight that there is not');
  const length = Math.ceil(bitsPerRow / 8) * height;
  // Less than this is not compressed, and has no length of its own.
  if (length < 12) yield* through(length);
  else yield* compact();
}

/** A length of one to three bytes, seven bits each but for the last. */
function* compact(): Generator<Step, void, Buffer> {
  let length = 0;
  for (const shift of [0, 7, 14]) {
    const byte = (yield { read: 1 }).readUInt8(0);
    length |= (shift === 14 ? byte : byte & 0x7f) << shift;
    if (shift === 14 || (byte & 0x80) === 0) break;
  }
  yield { pass: length };
}
