// The pure parts of terminals: frames of a session's holder however they are cut, and input that waits.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { readResize } from '../../packages/contract/terminal.ts';
import {
  attachFrame,
  HolderDecoder,
  type HolderFrame,
  inputHeader,
  resizeFrame,
} from '../../packages/guest/terminal/frames.ts';
import { InputQueue } from '../../packages/host/terminal/input-queue.ts';

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const raw = (type: string, payload: Buffer) =>
  Buffer.concat([Buffer.from(type), u32(payload.length), payload]);

const encoded = (frame: HolderFrame): Buffer => {
  if (frame.type === 'attached') return raw('H', u32(frame.pending));
  if (frame.type === 'taken') return raw('T', u32(frame.bytes));
  if (frame.type === 'detached') return raw('D', Buffer.alloc(0));
  if (frame.type === 'exited') return raw('X', Buffer.of(frame.code));
  return raw('O', frame.bytes);
};

const number = fc.nat(2 ** 32 - 1);
const frame: fc.Arbitrary<HolderFrame> = fc.oneof(
  number.map((pending) => ({ type: 'attached' as const, pending })),
  number.map((bytes) => ({ type: 'taken' as const, bytes })),
  fc.constant({ type: 'detached' as const }),
  fc.nat(255).map((code) => ({ type: 'exited' as const, code })),
  fc
    .uint8Array({ minLength: 1, maxLength: 300 })
    .map((bytes) => ({ type: 'output' as const, bytes: Buffer.from(bytes) })),
);

/** Neighbouring output is one: how it was cut into frames means nothing. */
function joined(frames: readonly HolderFrame[]): HolderFrame[] {
  const all: HolderFrame[] = [];
  for (const each of frames) {
    const last = all.at(-1);
    if (each.type === 'output' && last?.type === 'output') {
      all[all.length - 1] = { type: 'output', bytes: Buffer.concat([last.bytes, each.bytes]) };
    } else all.push(each);
  }
  return all;
}

const pieces = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b)];
  return at.map((start, i) => bytes.subarray(start, at[i + 1] ?? bytes.length));
};

test('frames of a holder come out as they went in, however they are cut', () => {
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 30 }), fc.array(fc.nat()), (frames, cuts) => {
      const decoder = new HolderDecoder();
      const got = pieces(Buffer.concat(frames.map(encoded)), cuts).flatMap((piece) => [
        ...decoder.push(piece),
      ]);
      assert.deepEqual(joined(got), joined(frames));
    }),
  );
});

test('what no holder says is refused, and nothing is made of it', () => {
  for (const bytes of [
    raw('O', Buffer.alloc(0)),
    Buffer.concat([Buffer.from('O'), u32(64 * 1024 + 1)]),
    Buffer.concat([Buffer.from('X'), u32(2)]),
    Buffer.concat([Buffer.from('H'), u32(0)]),
    Buffer.concat([Buffer.from('A'), u32(4)]),
    Buffer.alloc(5),
  ]) {
    assert.throws(() => [...new HolderDecoder().push(bytes)], /a holder’s frame/);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        const got = [...new HolderDecoder().push(Buffer.from(bytes))];
        assert.ok(got.length <= bytes.length);
      } catch (error) {
        assert.match(String(error), /a holder’s frame/);
      }
    }),
  );
});

test('what a holder is told has its type and length in front', () => {
  assert.deepEqual([...attachFrame(300, 2)], [0x41, 0, 0, 0, 4, 1, 44, 0, 2]);
  assert.deepEqual([...resizeFrame(1, 4096)], [0x53, 0, 0, 0, 4, 0, 1, 16, 0]);
  assert.deepEqual([...inputHeader(65_536)], [0x49, 0, 1, 0, 0]);
});

test('input that waits comes out in order, in frames, and in little room', () => {
  const action = fc.oneof(
    fc.uint8Array({ maxLength: 2_000 }),
    fc.nat(200_000).map((length) => new Uint8Array(length).fill(length % 251)),
    fc.constant('shift' as const),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
      const queue = new InputQueue();
      const [pushed, shifted]: [Uint8Array[], Buffer[]] = [[], []];
      const shift = () => {
        const bytes = queue.shift();
        if (bytes !== undefined) shifted.push(bytes);
        return bytes !== undefined;
      };
      for (const each of actions) {
        if (each === 'shift') shift();
        else {
          queue.push(each);
          pushed.push(each);
        }
      }
      while (shift());
      assert.ok(shifted.every(({ length }) => length > 0 && length <= 65_536));
      assert.ok(Buffer.concat(shifted).equals(Buffer.concat(pushed)));
    }),
  );
  const queue = new InputQueue();
  for (let i = 0; i < 1_000_000; i += 1) queue.push(Buffer.of(i % 256));
  let frames = 0;
  while (queue.shift() !== undefined) frames += 1;
  assert.ok(frames < 40, `${frames} frames`);
});

test('a resize is read from what is one, and from nothing else', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), (cols, rows) => {
      const size = readResize(JSON.stringify({ type: 'resize', cols, rows }));
      assert.ok(size && size.cols >= 1 && size.cols <= 4_096 && size.rows >= 1);
    }),
  );
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.equal(readResize(text), undefined);
    }),
  );
});
