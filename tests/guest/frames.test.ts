// The frame codec: whatever is encoded comes out again however it is cut, and nothing else does.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import {
  type Frame,
  FrameDecoder,
  frameHeader,
  type FrameType,
  frameTypes,
  type Side,
} from '../../packages/contract/guest/frames.ts';
import { ProtocolError } from '../../packages/contract/guest/protocol-error.ts';
import { counts, sizes } from '../../packages/contract/guest/sizes.ts';

const hello = { least: 2, most: sizes.hello };
const lengths: Record<FrameType, { readonly least: number; readonly most: number }> = {
  hello,
  open: { least: 2, most: sizes.open },
  accept: { least: 2, most: sizes.answer },
  refuse: { least: 2, most: sizes.answer },
  data: { least: 1, most: sizes.payload },
  end: { least: 0, most: 0 },
  reset: { least: 0, most: 0 },
  credit: { least: 4, most: 4 },
  event: { least: 2, most: sizes.event },
  ping: { least: 8, most: 8 },
  pong: { least: 8, most: 8 },
};
const ofLink: readonly FrameType[] = ['hello', 'event', 'ping', 'pong'];
const sentBy: Record<Side, readonly FrameType[]> = {
  host: ['hello', 'open', 'data', 'end', 'reset', 'credit', 'ping'],
  agent: ['hello', 'accept', 'refuse', 'data', 'end', 'reset', 'credit', 'event', 'pong'],
};
const types = Object.keys(frameTypes) as FrameType[];

function frameFrom(side: Side): fc.Arbitrary<Frame> {
  return fc.constantFrom(...sentBy[side]).chain((type) =>
    fc.record(
      {
        type: fc.constant(type),
        channel: ofLink.includes(type) ? fc.constant(0) : fc.integer({ min: 1, max: 0xffffffff }),
        stream: type === 'data' ? fc.nat(counts.streams - 1) : fc.constant(0),
        payload: fc
          .uint8Array({
            minLength: lengths[type].least,
            maxLength: Math.min(lengths[type].most, 300),
          })
          .map((bytes) => Buffer.from(bytes)),
      },
      { noNullPrototype: true },
    ),
  );
}

function encode({ type, channel, stream, payload }: Frame): Buffer {
  return Buffer.concat([frameHeader(type, channel, stream, payload.length), payload]);
}

/** Cuts at the given places, in any order and beyond the end too. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length];
  const sorted = at.toSorted((a, b) => a - b);
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end));
}

function decode(from: Side, chunks: readonly Buffer[]): Frame[] {
  const decoder = new FrameDecoder(from);
  const frames: Frame[] = [];
  for (const chunk of chunks) decoder.push(chunk, (frame) => frames.push(frame));
  return frames;
}

function violationOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof ProtocolError, String(error));
    return error.violation;
  }
  return 'none';
}

for (const side of ['host', 'agent'] as const) {
  test(`frames of the ${side} come out as they went in, however they are cut`, () => {
    fc.assert(
      fc.property(
        fc.array(frameFrom(side), { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (frames, places) => {
          const bytes = Buffer.concat(frames.map(encode));
          assert.deepEqual(decode(side, cut(bytes, places)), frames);
        },
      ),
    );
  });

  test(`a frame that the ${side} may not send is refused by its header alone`, () => {
    for (const type of types.filter((each) => !sentBy[side].includes(each))) {
      const header = frameHeader(type, ofLink.includes(type) ? 0 : 1, 0, lengths[type].least);
      assert.equal(
        violationOf(() => decode(side, [header])),
        'frame_type',
        type,
      );
    }
  });

  test(`a frame of the ${side} that is too long or too short is refused by its header alone`, () => {
    for (const type of sentBy[side]) {
      const channel = ofLink.includes(type) ? 0 : 1;
      for (const length of [lengths[type].least - 1, lengths[type].most + 1, 0xffffffff]) {
        if (length < 0) continue;
        const header = frameHeader(type, channel, 0, length);
        assert.equal(
          violationOf(() => decode(side, [header])),
          'frame_size',
          `${type} of ${length}`,
        );
      }
    }
  });

  test(`a frame of the ${side} on the wrong kind of channel or stream is refused`, () => {
    for (const type of sentBy[side]) {
      const { least } = lengths[type];
      const right = ofLink.includes(type) ? 0 : 1;
      const stream = type === 'data' ? counts.streams : 1;
      const header = (channel: number, on: number) => frameHeader(type, channel, on, least);
      assert.equal(
        violationOf(() => decode(side, [header(1 - right, 0)])),
        'frame_channel',
      );
      assert.equal(
        violationOf(() => decode(side, [header(right, stream)])),
        'frame_stream',
      );
    }
  });
}

test('the largest frame grows piece by piece into exactly its own memory', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 30 }), (places) => {
      const payload = Buffer.from(Uint8Array.from({ length: sizes.payload }, (_, i) => i * 7));
      const frame: Frame = { type: 'data', channel: 9, stream: 2, payload };
      const [got] = decode('agent', cut(encode(frame), places));
      assert.deepEqual(got, frame);
      assert.equal(got?.payload.buffer.byteLength, sizes.payload);
    }),
  );
});

test('any bytes are frames or a typed refusal, never anything else', () => {
  fc.assert(
    fc.property(
      fc.constantFrom<Side>('host', 'agent'),
      fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }),
      (side, chunks) => {
        const buffers = chunks.map((chunk) => Buffer.from(chunk));
        violationOf(() => decode(side, buffers));
      },
    ),
  );
});

test('a frame with one byte of its header changed is the other frame it says, or a refusal', () => {
  fc.assert(
    fc.property(frameFrom('agent'), fc.nat(sizes.header - 1), fc.nat(255), (frame, at, value) => {
      const bytes = encode(frame);
      bytes[at] = value;
      let frames: Frame[] = [];
      const violation = violationOf(() => {
        frames = decode('agent', [bytes]);
      });
      if (violation !== 'none') return;
      const again = Buffer.concat(frames.map(encode));
      assert.deepEqual(again, bytes.subarray(0, again.length));
    }),
  );
});

test('a payload is kept apart from the chunk it came in', () => {
  const chunk = encode({ type: 'data', channel: 1, stream: 0, payload: Buffer.from('before') });
  const [frame] = decode('agent', [chunk]);
  chunk.fill(0);
  assert.equal(frame?.payload.toString(), 'before');
  assert.equal(frame?.payload.buffer.byteLength, 6, 'and keeps no more memory than its own');
});

test('what is only announced takes no memory', () => {
  const header = frameHeader('data', 1, 0, sizes.payload);
  const before = process.memoryUsage().arrayBuffers;
  const decoders = Array.from({ length: 2_000 }, () => {
    const decoder = new FrameDecoder('agent');
    decoder.push(header, () => assert.fail('no frame is complete'));
    decoder.push(Buffer.alloc(16), () => assert.fail('no frame is complete'));
    return decoder;
  });
  const each = (process.memoryUsage().arrayBuffers - before) / decoders.length;
  assert.ok(each < 1_024, `${each} bytes for each announcement of ${sizes.payload}`);
});
