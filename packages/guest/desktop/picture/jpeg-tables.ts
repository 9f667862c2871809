// The tables of baseline JPEG: quantisation and Huffman codes as ITU-T T.81 annex K suggests them.

/** From the order in which coefficients are written to their place in a block. */
export const zigzag = Uint8Array.from([
  0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
  13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52,
  45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
]);

const brightnessSteps = [
  16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
  14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
  92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const colourSteps = [
  17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
  47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
  99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

/** In the order of a block. Quality as everybody's encoder has it: 50 is the tables as they are. */
export function quantSteps(quality: number): { brightness: Uint8Array; colour: Uint8Array } {
  const percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  const scaled = (steps: readonly number[]) =>
    Uint8Array.from(steps, (step) =>
      Math.min(255, Math.max(1, Math.floor((step * percent + 50) / 100))),
    );
  return { brightness: scaled(brightnessSteps), colour: scaled(colourSteps) };
}

export interface HuffmanTable {
  /** How many codes there are of each length from 1 to 16. */
  readonly counts: readonly number[];
  readonly symbols: readonly number[];
  /** By symbol: the code's bits, and how many. */
  readonly codes: Uint16Array;
  readonly lengths: Uint8Array;
}

function huffman(counts: readonly number[], symbols: readonly number[]): HuffmanTable {
  const codes = new Uint16Array(256);
  const lengths = new Uint8Array(256);
  let code = 0;
  let next = 0;
  for (const [i, count] of counts.entries()) {
    for (let j = 0; j < count; j += 1, next += 1, code += 1) {
      const symbol = symbols[next] as number;
      codes[symbol] = code;
      lengths[symbol] = i + 1;
    }
    code *= 2;
  }
  return { counts, symbols, codes, lengths };
}

const hex = (text: string) => [...Buffer.from(text, 'hex')];
const sizesInOrder = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

export const huffmanTables = {
  brightnessMean: huffman([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], sizesInOrder),
  brightnessDetail: huffman(
    [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d],
    hex(
      '01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728' +
        '292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586878889' +
        '8a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2' +
        'e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa',
    ),
  ),
  colourMean: huffman([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], sizesInOrder),
  colourDetail: huffman(
    [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77],
    hex(
      '000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a26' +
        '2728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a828384858687' +
        '88898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9da' +
        'e2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa',
    ),
  ),
};
