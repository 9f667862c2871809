// Frames on the socket between host and agent: ten bytes of header, then the payload.
//
//   u32 length of the payload · u8 type · u8 stream · u32 channel, all big-endian
//
// Everything a header can get wrong is refused before a byte of its payload is kept.

import { ProtocolError } from './protocol-error.ts';
import { counts, sizes } from './sizes.ts';

export const frameTypes = {
  hello: 1,
  open: 2,
  accept: 3,
  refuse: 4,
  data: 5,
  end: 6,
  reset: 7,
  credit: 8,
  event: 9,
  ping: 10,
  pong: 11,
} as const;

export type FrameType = keyof typeof frameTypes;
export type Side = 'host' | 'agent';

export interface Frame {
  readonly type: FrameType;
  readonly channel: number;
  readonly stream: number;
  /** The receiver's own: nothing else refers to its memory. */
  readonly payload: Buffer;
}

interface Rule {
  readonly from: readonly Side[];
  readonly least: number;
  readonly most: number;
  /** Frames of the link as a whole have channel 0, all others a channel of their own. */
  readonly channel: boolean;
}

const both: readonly Side[] = ['host', 'agent'];

/** `{}` is the shortest JSON object. */
const rules: Record<FrameType, Rule> = {
  hello: { from: both, least: 2, most: sizes.hello, channel: false },
  open: { from: ['host'], least: 2, most: sizes.open, channel: true },
  accept: { from: ['agent'], least: 2, most: sizes.answer, channel: true },
  refuse: { from: ['agent'], least: 2, most: sizes.answer, channel: true },
  // An empty frame would cost nothing to send without end.
  data: { from: both, least: 1, most: sizes.payload, channel: true },
  end: { from: both, least: 0, most: 0, channel: true },
  reset: { from: both, least: 0, most: 0, channel: true },
  credit: { from: both, least: 4, most: 4, channel: true },
  event: { from: ['agent'], least: 2, most: sizes.event, channel: false },
  ping: { from: ['host'], least: 8, most: 8, channel: false },
  pong: { from: ['agent'], least: 8, most: 8, channel: false },
};

const typesByNumber = new Map<number, FrameType>(
  Object.entries(frameTypes).map(([type, number]) => [number, type as FrameType]),
);

export function frameHeader(
  type: FrameType,
  channel: number,
  stream: number,
  length: number,
): Buffer {
  const header = Buffer.allocUnsafe(sizes.header);
  header.writeUInt32BE(length, 0);
  header[4] = frameTypes[type];
  header[5] = stream;
  header.writeUInt32BE(channel, 6);
  return header;
}

/** Cuts what arrives into frames. One per connection; it throws once and is then of no more use. */
export class FrameDecoder {
  readonly #from: Side;
  readonly #header = Buffer.alloc(sizes.header);
  #headerFilled = 0;
  #type: FrameType = 'hello';
  /** Of the payload: what was announced, what is kept of it, and how much of that is filled. */
  #length = 0;
  #payload = Buffer.alloc(0);
  #filled = 0;

  /** `from`: who is at the other end. */
  constructor(from: Side) {
    this.#from = from;
  }

  push(chunk: Buffer, take: (frame: Frame) => void): void {
    let at = 0;
    for (;;) {
      if (this.#headerFilled < sizes.header) {
        const wanted = sizes.header - this.#headerFilled;
        const got = chunk.copy(this.#header, this.#headerFilled, at, at + wanted);
        this.#headerFilled += got;
        at += got;
        if (got < wanted) return;
        this.#begin();
      }
      at += this.#keep(chunk, at);
      if (this.#filled < this.#length) return;
      const payload = this.#payload;
      this.#headerFilled = 0;
      this.#payload = nothing;
      take({
        type: this.#type,
        channel: this.#header.readUInt32BE(6),
        stream: this.#header[5] as number,
        payload,
      });
    }
  }

  #begin(): void {
    const header = this.#header;
    const type = typesByNumber.get(header[4] as number);
    const rule = type && rules[type];
    if (type === undefined || rule?.from.includes(this.#from) !== true) {
      throw new ProtocolError('frame_type', `no frame of type ${header[4]} comes from there`);
    }
    const length = header.readUInt32BE(0);
    if (length < rule.least || length > rule.most) {
      throw new ProtocolError('frame_size', `a frame ${type} of ${length} bytes`);
    }
    if ((header.readUInt32BE(6) !== 0) !== rule.channel) {
      throw new ProtocolError('frame_channel', `a frame ${type} on the wrong kind of channel`);
    }
    if ((header[5] as number) >= (type === 'data' ? counts.streams : 1)) {
      throw new ProtocolError('frame_stream', `a frame ${type} on stream ${header[5]}`);
    }
    this.#type = type;
    this.#length = length;
    this.#filled = 0;
  }

  /** Room grows with what is there, by doubling, never with what is announced. */
  #keep(chunk: Buffer, at: number): number {
    const got = Math.min(chunk.length - at, this.#length - this.#filled);
    const needed = this.#filled + got;
    if (needed > this.#payload.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(this.#length, 2 * needed));
      this.#payload.copy(grown, 0, 0, this.#filled);
      this.#payload = grown;
    }
    chunk.copy(this.#payload, this.#filled, at, at + got);
    this.#filled = needed;
    return got;
  }
}

const nothing = Buffer.alloc(0);
