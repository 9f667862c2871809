// Makes requests: a head with the request's number and length, then 32-bit words and bytes. X11 lets a
// client choose its byte order; ours is little-endian.

/** A number is a word of 32 bits; bytes are filled up to a multiple of four. */
export type Part = number | Uint8Array;

export function request(opcode: number, detail: number, ...parts: readonly Part[]): Buffer {
  const size = parts.reduce<number>((sum, part) => sum + sizeOf(part), 4);
  const bytes = Buffer.alloc(size);
  bytes[0] = opcode;
  bytes[1] = detail;
  bytes.writeUInt16LE(size / 4, 2);
  let at = 4;
  for (const part of parts) {
    if (typeof part === 'number') bytes.writeUInt32LE(part >>> 0, at);
    else bytes.set(part, at);
    at += sizeOf(part);
  }
  return bytes;
}

/** Two numbers of 16 bits, signed or not, in one word. */
export function pair(first: number, second: number): number {
  return ((first & 0xffff) | ((second & 0xffff) << 16)) >>> 0;
}

/** Four numbers of 8 bits in one word. */
export function quad(first: number, second = 0, third = 0, fourth = 0): number {
  return pair(first | (second << 8), third | (fourth << 8));
}

function sizeOf(part: Part): number {
  return typeof part === 'number' ? 4 : (part.length + 3) & ~3;
}
