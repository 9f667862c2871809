import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { type Conversation, watching } from '../../packages/host/sockets/rfb/client.ts';
import { ViewerGreeting } from '../../packages/host/sockets/rfb/greeting.ts';
import { shown } from '../../packages/host/sockets/rfb/server.ts';
import { Sieve, Unreadable } from '../../packages/host/sockets/rfb/sieve.ts';
import { messages, version } from '../support/rfb.ts';
import { rawUpdate, serverCutText } from '../support/vnc-server.ts';

const allowed = [0, 1, 7, 16, -223, -224, -239, -308, -26, -250];
const forbidden = [5, 15, -258, -312, -313, -316, -1063131698];
/** ClientInit: it shares. */
const hello = Buffer.from([1]);

interface Part {
  readonly sent: Buffer;
  readonly passed: Buffer;
}

const nothing = Buffer.alloc(0);
const dropped = (sent: Buffer): Part => ({ sent, passed: nothing });
const kept = (sent: Buffer): Part => ({ sent, passed: sent });
const head = (type: number, length: number) => {
  const bytes = Buffer.alloc(length);
  bytes.writeUInt8(type, 0);
  return bytes;
};

const fromViewer = fc.oneof(
  fc.tuple(fc.boolean(), fc.nat(0xffff)).map(([down, key]) => dropped(messages.key(down, key))),
  fc.tuple(fc.nat(255), fc.nat(999)).map(([b, x]) => dropped(messages.pointer(b, x, x))),
  fc.string({ maxLength: 300 }).map((text) => dropped(messages.cutText(ascii(text)))),
  fc.boolean().map((incremental) => kept(messages.updateRequest(incremental, 4, 2))),
  fc.array(fc.constantFrom(...allowed, ...forbidden), { maxLength: 30 }).map((list) => ({
    sent: messages.encodings(...list),
    passed: messages.encodings(...list.filter((encoding) => allowed.includes(encoding))),
  })),
  // EnableContinuousUpdates, xvp, SetDesktopSize, QEMU's keys, a fence.
  fc.constantFrom(head(150, 10), head(250, 4), setDesktopSize(2), head(255, 12)).map(dropped),
  fc.uint8Array({ maxLength: 64 }).map((data) => dropped(fence(Buffer.from(data)))),
  fc.nat(200).map((length) => dropped(extendedCutText(length))),
);

const fromServer = fc.oneof(
  fc.tuple(fc.nat(20), fc.nat(20)).map(([w, h]) => kept(rawUpdate(w, h))),
  fc.string({ maxLength: 200 }).map((text) => dropped(serverCutText(ascii(text)))),
  fc.constant(kept(Buffer.from([2]))),
  fc.uint8Array({ maxLength: 500 }).map((data) => kept(zrle(Buffer.from(data)))),
  fc.nat(30).map((size) => kept(tightFill(size))),
);

suite('what a watcher may say and see', () => {
  test('wire-guest 10: of a viewer’s messages only those pass that change nothing, however they are cut up', () => {
    fc.assert(
      fc.property(fc.array(fromViewer, { maxLength: 30 }), cuts(), (parts, sizes) => {
        const sieve = new Sieve(watching(conversation()));
        const sent = Buffer.concat([hello, ...parts.map((part) => part.sent)]);
        const passed = Buffer.concat([hello, ...parts.map((part) => part.passed)]);
        assert.deepEqual(fed(sieve, sent, sizes), passed);
      }),
    );
  });

  test('wire-guest 10: of the server’s messages all pass but the clipboard, however they are cut up', () => {
    const greeting = init();
    fc.assert(
      fc.property(fc.array(fromServer, { maxLength: 30 }), cuts(), (parts, sizes) => {
        const sieve = new Sieve(shown(conversation()));
        const sent = Buffer.concat([greeting, ...parts.map((part) => part.sent)]);
        const passed = Buffer.concat([greeting, ...parts.map((part) => part.passed)]);
        assert.deepEqual(fed(sieve, sent, sizes), passed);
      }),
    );
  });

  test('wire-guest 10: whatever bytes come, what passes is made of harmless messages', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 2_000 }),
      // Likely types first, so that more than the first message is reached.
      fc
        .array(fc.tuple(fc.constantFrom(0, 2, 3, 4, 5, 6, 150, 248, 250, 251, 255), fc.nat(255)), {
          maxLength: 400,
        })
        .map((pairs) => Uint8Array.from(pairs.flat())),
    );
    fc.assert(
      fc.property(bytes, cuts(), (data, sizes) => {
        const sieve = new Sieve(watching(conversation()));
        let passed = nothing;
        try {
          fed(sieve, Buffer.concat([hello, data]), sizes, (out) => {
            passed = Buffer.concat([passed, out]);
          });
        } catch (error) {
          assert.ok(error instanceof Unreadable, String(error));
        }
        assertHarmless(passed.subarray(hello.length));
      }),
      { numRuns: 1_000 },
    );
  });

  test('wire-guest 10: a greeting of another kind ends it', () => {
    const said: Buffer[] = [];
    const greeting = () => new ViewerGreeting((bytes) => said.push(bytes));
    for (const bad of ['RFB 003.003\n', 'GET / HTTP/1', '\0\0\0\0\0\0\0\0\0\0\0\0']) {
      assert.throws(() => greeting().take(Buffer.from(bad)), Unreadable);
    }
    const wrong = greeting();
    wrong.take(version);
    assert.throws(() => wrong.take(Buffer.from([2])), Unreadable);
    said.length = 0;
    const right = greeting();
    const rest = [...version, 1, 1, 9].map((byte) => right.take(Buffer.from([byte])));
    assert.deepEqual(Buffer.concat(rest), Buffer.from([1, 9]));
    assert.deepEqual(
      Buffer.concat(said),
      Buffer.concat([version, Buffer.from([1, 1, 0, 0, 0, 0])]),
    );
  });

  test('wire-guest 10: a pixel format half way, and an encoding nobody asked for, end it', () => {
    const viewer = new Sieve(watching(conversation()));
    viewer.feed(Buffer.concat([hello, messages.pixelFormat(), messages.updateRequest(true, 1, 1)]));
    assert.throws(() => viewer.feed(messages.pixelFormat()), Unreadable);
    const server = new Sieve(shown(conversation()));
    server.feed(init());
    const update = rawUpdate(1, 1);
    update.writeInt32BE(5, 12);
    assert.throws(() => server.feed(update), Unreadable);
  });
});

function conversation(): Conversation {
  return { pixels: undefined, asked: false };
}

function cuts() {
  return fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
}

function fed(sieve: Sieve, bytes: Buffer, sizes: number[], out?: (some: Buffer) => void): Buffer {
  const all: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes[n % sizes.length] as number;
    for (const some of sieve.feed(Buffer.from(bytes.subarray(at, at + size)))) {
      out?.(some);
      all.push(some);
    }
    at += size;
  }
  return Buffer.concat(all);
}

/** Read once more, by another reader: whole messages of the three kinds, the last perhaps cut off. */
function assertHarmless(passed: Buffer): void {
  for (let at = 0; at < passed.length;) {
    const type = passed[at];
    if (type === 0) at += 20;
    else if (type === 3) at += 10;
    else {
      assert.equal(type, 2);
      const count = passed.readUInt16BE(at + 2);
      for (let n = 0; n < count; n += 1) {
        assert.ok(!forbidden.includes(passed.readInt32BE(at + 4 + 4 * n)));
      }
      at += 4 + 4 * count;
    }
  }
}

function ascii(text: string): string {
  return text.replaceAll(/[^ -~]/g, '?');
}

function setDesktopSize(screens: number): Buffer {
  const bytes = head(251, 8 + 16 * screens);
  bytes.writeUInt8(screens, 6);
  return bytes;
}

function fence(data: Buffer): Buffer {
  const bytes = head(248, 9);
  bytes.writeUInt8(data.length, 8);
  return Buffer.concat([bytes, data]);
}

function extendedCutText(length: number): Buffer {
  const bytes = head(6, 8 + length);
  bytes.writeInt32BE(-length, 4);
  return bytes;
}

function init(): Buffer {
  const format = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0];
  return Buffer.from([0, 4, 0, 2, ...format, 0, 0, 0, 1, 0x78]);
}

function rectangle(encoding: number, width: number, height: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16BE(1, 2);
  bytes.writeUInt16BE(width, 8);
  bytes.writeUInt16BE(height, 10);
  bytes.writeInt32BE(encoding, 12);
  return bytes;
}

function zrle(data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length, 0);
  return Buffer.concat([rectangle(16, 64, 64), length, data]);
}

/** A colour for the whole, or a palette of two and a bit per pixel. */
function tightFill(size: number): Buffer {
  if (size % 2 === 0) return Buffer.concat([rectangle(7, 9, 9), Buffer.from([0x80, 1, 2, 3])]);
  const bits = Buffer.alloc(Math.ceil(size / 8) * 2, 0xaa);
  const palette = Buffer.from([0x40, 1, 1, 1, 2, 3, 4, 5, 6]);
  return Buffer.concat([rectangle(7, size, 2), palette, bits]);
}
