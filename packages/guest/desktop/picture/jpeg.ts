// Baseline JPEG, in slices, so that the agent goes on with everything else. Colours have half the
// resolution, as everywhere, unless the quality asked for is one at which that would be seen.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { JpegBits } from './jpeg-bits.ts';
import { quantFactors, transform } from './jpeg-dct.ts';
import { type HuffmanTable, huffmanTables, quantSteps, zigzag } from './jpeg-tables.ts';
import { channels, type Picture } from './picture.ts';
import { Slices } from './slices.ts';

const fullColourFrom = 90;

/** Quality 1 to 100. */
export async function encodeJpeg(
  context: Context,
  picture: Picture,
  quality: number,
): Promise<Buffer> {
  const halved = quality < fullColourFrom;
  const steps = quantSteps(quality);
  const slices = new Slices(context);
  const scan = new Scan(picture, halved, steps);
  const side = halved ? 16 : 8;
  for (let y = 0; y < picture.height; y += side) {
    for (let x = 0; x < picture.width; x += side) scan.unit(x, y);
    await slices.step();
  }
  return Buffer.concat([...headers(picture, halved, steps), scan.bits.end(), marker(0xd9)]);
}

type Steps = ReturnType<typeof quantSteps>;

/** Turns a square of pixels after the other into blocks. */
class Scan {
  readonly bits: JpegBits;
  readonly #picture: Picture;
  readonly #halved: boolean;
  readonly #factors: { readonly brightness: Float32Array; readonly colour: Float32Array };
  readonly #brightness: Float32Array[];
  readonly #blue = new Float32Array(64);
  readonly #red = new Float32Array(64);
  readonly #quantised = new Int32Array(64);
  readonly #means = { brightness: 0, blue: 0, red: 0 };

  constructor(picture: Picture, halved: boolean, steps: Steps) {
    this.#picture = picture;
    this.#halved = halved;
    this.#factors = {
      brightness: quantFactors(steps.brightness),
      colour: quantFactors(steps.colour),
    };
    this.#brightness = Array.from({ length: halved ? 4 : 1 }, () => new Float32Array(64));
    this.bits = new JpegBits(65_536 + picture.width * picture.height);
  }

  unit(x: number, y: number): void {
    const { brightnessMean, brightnessDetail, colourMean, colourDetail } = huffmanTables;
    const means = this.#means;
    this.#blue.fill(0);
    this.#red.fill(0);
    for (const [i, block] of this.#brightness.entries()) {
      this.#read(block, x + 8 * (i & 1), y + 8 * (i >> 1), i);
    }
    const { brightness, colour } = this.#factors;
    for (const block of this.#brightness) {
      const mean = means.brightness;
      means.brightness = this.#write(block, brightness, mean, brightnessMean, brightnessDetail);
    }
    means.blue = this.#write(this.#blue, colour, means.blue, colourMean, colourDetail);
    means.red = this.#write(this.#red, colour, means.red, colourMean, colourDetail);
  }

  /** Eight by eight pixels; those beyond the edge are as those at it. */
  #read(block: Float32Array, x: number, y: number, quarter: number): void {
    const { pixels, width, height } = this.#picture;
    const halved = this.#halved;
    const share = halved ? 0.25 : 1;
    // Where the colours of this quarter begin in their own block.
    const corner = halved ? (quarter >> 1) * 32 + (quarter & 1) * 4 : 0;
    for (let row = 0; row < 8; row += 1) {
      const line = Math.min(y + row, height - 1) * width;
      for (let column = 0; column < 8; column += 1) {
        const at = (line + Math.min(x + column, width - 1)) * channels;
        const r = pixels[at] as number;
        const g = pixels[at + 1] as number;
        const b = pixels[at + 2] as number;
        block[row * 8 + column] = 0.299 * r + 0.587 * g + 0.114 * b - 128;
        const to = halved ? corner + (row >> 1) * 8 + (column >> 1) : row * 8 + column;
        this.#blue[to] =
          (this.#blue[to] as number) + share * (0.5 * b - 0.168736 * r - 0.331264 * g);
        this.#red[to] = (this.#red[to] as number) + share * (0.5 * r - 0.418688 * g - 0.081312 * b);
      }
    }
  }

  #write(
    block: Float32Array,
    factors: Float32Array,
    previousMean: number,
    mean: HuffmanTable,
    detail: HuffmanTable,
  ): number {
    transform(block);
    const quantised = this.#quantised;
    for (let i = 0; i < 64; i += 1) {
      const value = (block[i] as number) * (factors[i] as number);
      quantised[i] = value < 0 ? value - 0.5 : value + 0.5;
    }
    return this.bits.block(quantised, previousMean, mean, detail);
  }
}

function headers({ width, height }: Picture, halved: boolean, steps: Steps): Buffer[] {
  const { brightnessMean, brightnessDetail, colourMean, colourDetail } = huffmanTables;
  const inOrder = (table: Uint8Array) => [...zigzag].map((place) => table[place] as number);
  const coding = (id: number, { counts, symbols }: HuffmanTable) => [id, ...counts, ...symbols];
  const sampling = halved ? 0x22 : 0x11;
  const frame = Buffer.alloc(15);
  frame[0] = 8;
  frame.writeUInt16BE(height, 1);
  frame.writeUInt16BE(width, 3);
  frame.set([3, 1, sampling, 0, 2, 0x11, 1, 3, 0x11, 1], 5);
  return [
    marker(0xd8),
    segment(0xe0, [0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0]),
    segment(0xdb, [0, ...inOrder(steps.brightness), 1, ...inOrder(steps.colour)]),
    segment(0xc0, frame),
    segment(0xc4, [
      ...coding(0x00, brightnessMean),
      ...coding(0x10, brightnessDetail),
      ...coding(0x01, colourMean),
      ...coding(0x11, colourDetail),
    ]),
    segment(0xda, [3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]),
  ];
}

function marker(type: number): Buffer {
  return Buffer.from([0xff, type]);
}

function segment(type: number, content: Iterable<number>): Buffer {
  const bytes = [...content];
  const length = bytes.length + 2;
  return Buffer.from([0xff, type, length >> 8, length & 0xff, ...bytes]);
}
