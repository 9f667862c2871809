// Messages of the Wayland protocol: whose they are, what they say, and their values, four bytes each.

export interface Message {
  readonly object: number;
  readonly opcode: number;
  readonly body: Buffer;
}

const headerBytes = 8;

/** Numbers are unsigned; a text is counted with its zero byte and filled up to four. */
export function encode(object: number, opcode: number, ...values: (number | string)[]): Buffer {
  const body = Buffer.concat(
    values.map((value) => (typeof value === 'string' ? text(value) : word(value))),
  );
  return Buffer.concat([word(object), word(((headerBytes + body.length) << 16) | opcode), body]);
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

function text(value: string): Buffer {
  const length = Buffer.byteLength(value) + 1;
  const bytes = Buffer.alloc(4 + Math.ceil(length / 4) * 4);
  bytes.writeUInt32LE(length);
  bytes.write(value, 4);
  return bytes;
}

/** Twenty-four bits before the point, eight behind it. */
export const fixed = (value: number): number => Math.round(value * 256);

export function readText(body: Buffer, at: number): { value: string; end: number } {
  const length = body.readUInt32LE(at);
  const value = body.toString('utf8', at + 4, at + 4 + Math.max(0, length - 1));
  return { value, end: at + 4 + Math.ceil(length / 4) * 4 };
}

/** Takes the stream apart. A message has 65535 bytes at most, so no more is held. */
export class Messages {
  #held = Buffer.alloc(0);

  *feed(chunk: Buffer): Generator<Message> {
    this.#held = Buffer.concat([this.#held, chunk]);
    while (this.#held.length >= headerBytes) {
      const size = this.#held.readUInt16LE(6);
      if (size < headerBytes) throw new RangeError('a message shorter than its header');
      if (this.#held.length < size) return;
      yield {
        object: this.#held.readUInt32LE(0),
        opcode: this.#held.readUInt16LE(4),
        body: this.#held.subarray(headerBytes, size),
      };
      this.#held = this.#held.subarray(size);
    }
  }
}
