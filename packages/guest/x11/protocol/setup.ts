// The greeting, and what the X server tells about itself in return.

import { DisplayError } from '../../desktop/trouble.ts';

export interface Setup {
  readonly idBase: number;
  readonly idMask: number;
  readonly minKeycode: number;
  readonly maxKeycode: number;
  readonly root: number;
  readonly depth: number;
  readonly format: PixelFormat;
}

/** How a pixel of the root window lies in the bytes of an image. */
export interface PixelFormat {
  readonly bitsPerPixel: number;
  /** Rows are filled up to a multiple of so many bits. */
  readonly rowPad: number;
  readonly bigEndian: boolean;
  readonly red: number;
  readonly green: number;
  readonly blue: number;
}

/** Little-endian, version 11.0, no authorisation: the display lets everybody of this machine in. */
export function greeting(): Buffer {
  return Buffer.from([0x6c, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

const accepted = 1;

/** Throws a RangeError when it is cut short, as Buffer does. */
export function readSetup(answer: Buffer): Setup {
  if (answer.readUInt8(0) !== accepted) {
    throw new DisplayError('lost', 'the display does not let the agent in');
  }
  const vendorLength = answer.readUInt16LE(24);
  const formats = answer.readUInt8(29);
  const formatsAt = 40 + ((vendorLength + 3) & ~3);
  const screenAt = formatsAt + 8 * formats;
  const depth = answer.readUInt8(screenAt + 38);
  return {
    idBase: answer.readUInt32LE(12),
    idMask: answer.readUInt32LE(16),
    minKeycode: answer.readUInt8(34),
    maxKeycode: answer.readUInt8(35),
    root: answer.readUInt32LE(screenAt),
    depth,
    format: {
      bigEndian: answer.readUInt8(30) === 1,
      ...formatOf(answer, formatsAt, formats, depth),
      ...masksOf(answer, screenAt),
    },
  };
}

function formatOf(answer: Buffer, at: number, count: number, depth: number) {
  for (let i = 0; i < count; i += 1) {
    const entry = at + 8 * i;
    if (answer.readUInt8(entry) === depth) {
      return { bitsPerPixel: answer.readUInt8(entry + 1), rowPad: answer.readUInt8(entry + 2) };
    }
  }
  throw new DisplayError('lost', 'the display has no format for its own depth');
}

/** The masks of the root window's visual, found among those of every depth. */
function masksOf(answer: Buffer, screenAt: number) {
  const wanted = answer.readUInt32LE(screenAt + 32);
  const depths = answer.readUInt8(screenAt + 39);
  let at = screenAt + 40;
  for (let i = 0; i < depths; i += 1) {
    const visuals = answer.readUInt16LE(at + 2);
    at += 8;
    for (let j = 0; j < visuals; j += 1, at += 24) {
      if (answer.readUInt32LE(at) !== wanted) continue;
      const [red, green, blue] = [8, 12, 16].map((offset) => answer.readUInt32LE(at + offset));
      return { red: red as number, green: green as number, blue: blue as number };
    }
  }
  throw new DisplayError('lost', 'the display does not know its own visual');
}
