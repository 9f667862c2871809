// The coded part of a JPEG: blocks of coefficients become Huffman codes, and codes a row of bits.

import { type HuffmanTable, zigzag } from './jpeg-tables.ts';

/** A block takes at most 64 codes of 16 bits with 11 more each, every byte stuffed. */
const mostBlockBytes = 512;
const zeroRun = 0xf0;
const endOfBlock = 0;

export class JpegBits {
  #bytes: Buffer;
  #at = 0;
  #held = 0;
  #heldBits = 0;

  constructor(expected: number) {
    this.#bytes = Buffer.allocUnsafeSlow(expected);
  }

  /** `coefficients` in the order of a block. Answers its mean, from which the next one's is told. */
  block(
    coefficients: Int32Array,
    previousMean: number,
    mean: HuffmanTable,
    detail: HuffmanTable,
  ): number {
    if (this.#at + mostBlockBytes > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], 2 * this.#bytes.length);
    }
    const value = coefficients[0] as number;
    this.#coded(mean, 0, value - previousMean);
    let last = 63;
    while (last > 0 && coefficients[zigzag[last] as number] === 0) last -= 1;
    let zeros = 0;
    for (let i = 1; i <= last; i += 1) {
      const coefficient = coefficients[zigzag[i] as number] as number;
      if (coefficient === 0) {
        zeros += 1;
        continue;
      }
      for (; zeros > 15; zeros -= 16) this.#symbol(detail, zeroRun);
      this.#coded(detail, zeros << 4, coefficient);
      zeros = 0;
    }
    if (last < 63) this.#symbol(detail, endOfBlock);
    return value;
  }

  /** Filled up with ones. */
  end(): Buffer {
    if (this.#heldBits > 0) this.#bits(0x7f, 7);
    return this.#bytes.subarray(0, this.#at);
  }

  /** A symbol that tells how long the number is, then the number itself; negative ones less one. */
  #coded(table: HuffmanTable, run: number, value: number): void {
    const length = 32 - Math.clz32(value < 0 ? -value : value);
    this.#symbol(table, run | length);
    if (length > 0) this.#bits((value < 0 ? value - 1 : value) & ((1 << length) - 1), length);
  }

  #symbol(table: HuffmanTable, symbol: number): void {
    this.#bits(table.codes[symbol] as number, table.lengths[symbol] as number);
  }

  /** At most 16 bits at once: seven may be held already. */
  #bits(value: number, length: number): void {
    let held = (this.#held << length) | value;
    let heldBits = this.#heldBits + length;
    while (heldBits >= 8) {
      heldBits -= 8;
      const byte = (held >> heldBits) & 0xff;
      this.#bytes[this.#at++] = byte;
      // A byte of ones would begin a marker.
      if (byte === 0xff) this.#bytes[this.#at++] = 0;
    }
    this.#held = held & ((1 << heldBits) - 1);
    this.#heldBits = heldBits;
  }
}
