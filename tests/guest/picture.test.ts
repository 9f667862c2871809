// Pictures: what is encoded is what a decoder shows, and what is made smaller is an average of it.

import assert from 'node:assert/strict';
import test from 'node:test';
import { crc32, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import jpeg from 'jpeg-js';
import { encodeJpeg } from '../../packages/guest/desktop/picture/jpeg.ts';
import {
  crop,
  type Picture,
  scaledSize,
  shrunkSize,
} from '../../packages/guest/desktop/picture/picture.ts';
import { pixelReader } from '../../packages/guest/x11/picture/pixels.ts';
import { encodePng } from '../../packages/guest/desktop/picture/png.ts';
import { resize } from '../../packages/guest/desktop/picture/resize.ts';
import { context } from './x11/desktop-rig.ts';

const size = fc.record({
  width: fc.integer({ min: 1, max: 70 }),
  height: fc.integer({ min: 1, max: 40 }),
});

/** Noise, or stripes as desktops have them. */
const picture: fc.Arbitrary<Picture> = fc
  .tuple(size, fc.uint8Array({ minLength: 1, maxLength: 40 }))
  .map(([{ width, height }, pattern]) => {
    const at = (i: number) => pattern[i % pattern.length] as number;
    return {
      width,
      height,
      pixels: Buffer.from(Array.from({ length: width * height * 3 }, (_, i) => at(i))),
    };
  });

function smooth(width: number, height: number): Picture {
  const pixels = Buffer.alloc(width * height * 3);
  for (let i = 0; i < width * height; i += 1) {
    const x = i % width;
    const y = Math.floor(i / width);
    pixels.set([(x * 255) / width, (y * 255) / height, 255 - (x * 255) / width], i * 3);
  }
  return { width, height, pixels };
}

function decodePng(bytes: Buffer): Picture {
  assert.equal(bytes.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length;) {
    const length = bytes.readUInt32BE(at);
    const body = bytes.subarray(at + 4, at + 8 + length);
    assert.equal(bytes.readUInt32BE(at + 8 + length), crc32(body));
    chunks.set(body.toString('latin1', 0, 4), body.subarray(4));
    at += 12 + length;
  }
  assert.deepEqual([...chunks.keys()], ['IHDR', 'IDAT', 'IEND']);
  const header = chunks.get('IHDR') as Buffer;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  assert.deepEqual([...header.subarray(8)], [8, 2, 0, 0, 0]);
  const rows = inflateSync(chunks.get('IDAT') as Buffer);
  assert.equal(rows.length, height * (1 + 3 * width));
  const pixels = Buffer.alloc(width * height * 3);
  for (let i = 0; i < pixels.length; i += 1) {
    const [row, column] = [Math.floor(i / (3 * width)), i % (3 * width)];
    const filter = rows[row * (1 + 3 * width)];
    const left = column < 3 ? 0 : (pixels[i - 3] as number);
    const above = row === 0 ? 0 : (pixels[i - 3 * width] as number);
    const predicted = { 0: 0, 1: left, 2: above }[filter as 0 | 1 | 2];
    pixels[i] = (rows[row * (1 + 3 * width) + 1 + column] as number) + predicted;
  }
  return { width, height, pixels };
}

test('a PNG holds every pixel', async () => {
  await fc.assert(
    fc.asyncProperty(picture, async (source) => {
      assert.deepEqual(decodePng(await encodePng(context, source)), source);
    }),
  );
  // More than one band.
  const large = smooth(1_024, 300);
  assert.deepEqual(decodePng(await encodePng(context, large)), large);
});

function decodeJpeg(bytes: Buffer): Picture {
  const { width, height, data } = jpeg.decode(bytes, { useTArray: true, formatAsRGBA: false });
  return { width, height, pixels: Buffer.from(data) };
}

function meanDifference(a: Picture, b: Picture): number {
  let sum = 0;
  for (const [i, value] of a.pixels.entries()) sum += Math.abs(value - (b.pixels[i] as number));
  return sum / a.pixels.length;
}

test('a JPEG of any size and quality is one that a decoder reads', async () => {
  await fc.assert(
    fc.asyncProperty(picture, fc.integer({ min: 1, max: 100 }), async (source, quality) => {
      const decoded = decodeJpeg(await encodeJpeg(context, source, quality));
      assert.equal(decoded.width, source.width);
      assert.equal(decoded.height, source.height);
      if (quality === 100) assert.ok(meanDifference(decoded, source) < 3);
    }),
  );
});

test('a JPEG shows what was encoded, the better the higher its quality', async () => {
  const source = smooth(200, 120);
  let before = { difference: Infinity, length: 0 };
  for (const quality of [5, 30, 72, 89, 90, 100]) {
    const bytes = await encodeJpeg(context, source, quality);
    const difference = meanDifference(decodeJpeg(bytes), source);
    assert.ok(difference < before.difference + 0.3, `quality ${quality}: ${difference}`);
    assert.ok(bytes.length > before.length);
    before = { difference, length: bytes.length };
  }
  assert.ok(before.difference < 1);
});

test('noise at the highest quality needs long codes', async () => {
  let seed = 1;
  const noise = Array.from({ length: 64 * 64 * 3 }, () => {
    seed = (seed * 48_271) % 0x7fffffff;
    return seed & 0xff;
  });
  const source = { width: 64, height: 64, pixels: Buffer.from(noise) };
  assert.ok(meanDifference(decodeJpeg(await encodeJpeg(context, source, 100)), source) < 3);
  const extreme = { ...source, pixels: Buffer.from(noise.map((value) => (value > 127 ? 255 : 0))) };
  assert.ok(meanDifference(decodeJpeg(await encodeJpeg(context, extreme, 100)), extreme) < 6);
});

test('a smaller picture is the average of what it covers', async () => {
  const fraction = fc.double({ min: 0.01, max: 1, noNaN: true });
  await fc.assert(
    fc.asyncProperty(picture, fraction, fraction, async (source, across, down) => {
      const target = {
        width: Math.max(1, Math.round(source.width * across)),
        height: Math.max(1, Math.round(source.height * down)),
      };
      const small = await resize(context, source, target);
      assert.equal(small.pixels.length, target.width * target.height * 3);
      const off = mostOff(source.width, target.width) + mostOff(source.height, target.height);
      for (let colour = 0; colour < 3; colour += 1) {
        assert.ok(Math.abs(meanOf(small, colour) - meanOf(source, colour)) < 0.6 + off);
      }
      // Nothing is brighter or darker than what it is made of.
      assert.ok(Math.max(...small.pixels) <= Math.max(...source.pixels));
      assert.ok(Math.min(...small.pixels) >= Math.min(...source.pixels));
    }),
  );
});

/** Shares are whole parts of 2048, so each may be off by one; what one pixel has too much others lack. */
function mostOff(from: number, to: number): number {
  return from === to ? 0 : (127.5 * (Math.ceil(from / to) + 1)) / 2048;
}

function meanOf({ pixels }: Picture, colour: number): number {
  const values = [...pixels].filter((_, i) => i % 3 === colour);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

test('two to one is the mean of four, and a picture does not grow', async () => {
  const source = { width: 2, height: 2, pixels: Buffer.from([0, 0, 9, 8, 0, 9, 4, 0, 9, 8, 4, 9]) };
  const small = await resize(context, source, { width: 1, height: 1 });
  assert.deepEqual([...small.pixels], [5, 1, 9]);
  assert.equal(await resize(context, source, { width: 2, height: 2 }), source);
  await assert.rejects(resize(context, source, { width: 3, height: 2 }), RangeError);
});

test('sizes are as the routes say', () => {
  const screen = { width: 1280, height: 801 };
  assert.deepEqual(shrunkSize(screen, 640), { width: 640, height: 400 });
  assert.deepEqual(shrunkSize(screen, 1), { width: 64, height: 40 });
  assert.deepEqual(shrunkSize(screen, 9_999), screen);
  assert.deepEqual(shrunkSize({ width: 40, height: 40 }, 10), { width: 40, height: 40 });
  assert.deepEqual(shrunkSize({ width: 1000, height: 1 }, 64), { width: 64, height: 1 });
  assert.deepEqual(scaledSize(screen, 0.5), { width: 640, height: 401 });
  assert.deepEqual(scaledSize(screen, 1), screen);
  assert.deepEqual(scaledSize(screen, 0.0001), { width: 1, height: 1 });
});

test('a part is cut out whole or not at all', () => {
  const source = smooth(20, 10);
  const part = crop(source, { x: 3, y: 4, width: 5, height: 6 });
  const pixel = (from: Picture, x: number, y: number) =>
    from.pixels.subarray((y * from.width + x) * 3, (y * from.width + x) * 3 + 3);
  assert.deepEqual(pixel(part, 0, 0), pixel(source, 3, 4));
  assert.deepEqual(pixel(part, 4, 5), pixel(source, 7, 9));
  assert.throws(() => crop(source, { x: 16, y: 0, width: 5, height: 1 }), RangeError);
});

test('pixels of every format become red, green and blue', () => {
  const usual = { rowPad: 32, bigEndian: false, red: 0xff0000, green: 0xff00, blue: 0xff };
  const cases = [
    { format: { ...usual, bitsPerPixel: 32 }, bytes: [3, 2, 1, 0], colours: [1, 2, 3] },
    {
      format: { ...usual, bitsPerPixel: 32, bigEndian: true },
      bytes: [0, 1, 2, 3],
      colours: [1, 2, 3],
    },
    {
      format: { ...usual, bitsPerPixel: 16, red: 0xf800, green: 0x7e0, blue: 0x1f },
      bytes: [0xff, 0x07],
      colours: [0, 255, 255],
    },
  ];
  for (const { format, bytes, colours } of cases) {
    const to = Buffer.alloc(3);
    pixelReader(format)(Buffer.from(bytes), 0, to, 0, 1);
    assert.deepEqual([...to], colours);
  }
  assert.throws(() => pixelReader({ ...usual, bitsPerPixel: 8 }), /8 bits/);
  assert.throws(() => pixelReader({ ...usual, bitsPerPixel: 16, red: 0 }), /without colours/);
});

test('pixels are the same wherever they lie', () => {
  const usual = { rowPad: 32, bigEndian: false, red: 0xff0000, green: 0xff00, blue: 0xff };
  const read = pixelReader({ ...usual, bitsPerPixel: 32 });
  const bytes = fc.uint8Array({ minLength: 0, maxLength: 100 });
  fc.assert(
    fc.property(bytes, fc.nat(8), fc.nat(8), (noise, at, toAt) => {
      const count = Math.floor(noise.length / 4);
      const from = Buffer.concat([Buffer.alloc(at), noise]);
      const to = Buffer.alloc(toAt + 3 * count);
      read(from, at, to, toAt, count);
      const wanted = Array.from({ length: count }, (_, i) =>
        [2, 1, 0].map((colour) => noise[4 * i + colour]),
      );
      assert.deepEqual([...to.subarray(toAt)], wanted.flat());
    }),
  );
});

test('encoding stops when its caller leaves', async () => {
  const left = { signal: AbortSignal.abort(new Error('left')) };
  const large = smooth(1_500, 900);
  await assert.rejects(encodePng(left, large), /left/);
  await assert.rejects(encodeJpeg(left, large, 72), /left/);
  await assert.rejects(resize(left, large, { width: 1_400, height: 800 }), /left/);
});
