// A display that lies: whatever it says, the agent gets an error in time, keeps nothing, and connects again.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import test, { type TestContext } from 'node:test';
import fc from 'fast-check';
import { Connection } from '../../../packages/guest/x11/protocol/connection.ts';
import { Display } from '../../../packages/guest/x11/protocol/display.ts';
import { EventQueue } from '../../../packages/guest/x11/protocol/event-queue.ts';
import { Packets } from '../../../packages/guest/x11/protocol/packets.ts';
import { readProperty, readWords } from '../../../packages/guest/x11/protocol/properties.ts';
import { request } from '../../../packages/guest/x11/protocol/request.ts';
import { readSetup } from '../../../packages/guest/x11/protocol/setup.ts';
import { DisplayError, type Trouble } from '../../../packages/guest/desktop/trouble.ts';
import { grab } from '../../../packages/guest/x11/picture/grab.ts';
import { readKeyboard } from '../../../packages/guest/x11/input/keyboard-map.ts';
import { describe as describeWindow } from '../../../packages/guest/x11/windows/window.ts';
import { unhung, until } from '../../support/until.ts';
import { context } from './desktop-rig.ts';
import { FakeServer, reply, setupAnswer } from './fake-server.ts';

const ask = request(43, 0);
/** Enough to be let in, unless the machine stands still just then. */
const hurriedMs = 1_500;

function troubled(trouble: Trouble) {
  return (error: unknown) => error instanceof DisplayError && error.trouble === trouble;
}

type Talk = Parameters<typeof FakeServer.of>[1];

async function connected(t: TestContext, talk: Talk, patienceMs = 60_000) {
  const { path } = await FakeServer.of(t, talk);
  const connection = await until('we are let in', () => Connection.open({ path, patienceMs }));
  t.after(() => connection.close());
  return connection;
}

test('nobody there, and somebody who does not let us in', async (t) => {
  const display = new Display({ path: '/nowhere/X0', patienceMs: 1_000 });
  await assert.rejects(display.connection(context), troubled('lost'));
  const refusal = Buffer.from([0, 0, 11, 0, 0, 0, 0, 0]);
  const { path } = await FakeServer.of(t, () => {}, refusal);
  await assert.rejects(Connection.open({ path, patienceMs: 60_000 }), troubled('lost'));
});

test('silence at the greeting and later is loss', async (t) => {
  const { path } = await FakeServer.of(t, () => {}, Buffer.alloc(0));
  const opening = Connection.open({ path, patienceMs: hurriedMs });
  await assert.rejects(unhung('opening', opening), troubled('lost'));
  const connection = await connected(t, () => {}, hurriedMs);
  await assert.rejects(unhung('asking', connection.settled(context)), troubled('lost'));
  assert.ok(connection.lost);
  assert.throws(() => connection.send(ask), troubled('lost'));
});

test('events without end do not stand for an answer', async (t) => {
  const flood = (socket: Socket) => {
    const events = Buffer.alloc(3_200);
    for (let at = 0; at < events.length; at += 32) events[at] = 28;
    const timer = setInterval(() => socket.write(events), 1);
    socket.once('close', () => clearInterval(timer));
  };
  const connection = await connected(t, flood, hurriedMs);
  const queue = new EventQueue(connection, () => true);
  await assert.rejects(unhung('asking', connection.settled(context)), troubled('lost'));
  // It kept some and then gave up.
  const all = async () => {
    for (;;) await queue.next(context);
  };
  await assert.rejects(unhung('reading', all()), DisplayError);
});

test('a reply that claims gigabytes is refused and dropped as it comes', async (t) => {
  const connection = await connected(
    t,
    (socket) => {
      socket.write(reply(1, undefined, 0x3fffffff));
      const piece = Buffer.alloc(65_536);
      const pour = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', pour);
      pour();
    },
    hurriedMs,
  );
  const before = process.memoryUsage().arrayBuffers;
  await assert.rejects(unhung('asking', connection.settled(context)), DisplayError);
  await unhung('losing it', connection.ended);
  assert.ok(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024);
});

test('a reply that is somewhat too long fails its request alone', async (t) => {
  const connection = await connected(t, (socket) => {
    socket.write(Buffer.concat([reply(1, Buffer.alloc(24 + 400)), reply(2)]));
  });
  const first = connection.settled(context);
  const second = connection.settled(context);
  await assert.rejects(first, troubled('too_large'));
  await second;
});

test('answers out of order, to nothing, or of the future end the connection', async (t) => {
  for (const sequences of [[2, 1], [1, 1, 1], [7], [2]]) {
    const connection = await connected(t, (socket) => {
      socket.write(Buffer.concat(sequences.map((sequence) => reply(sequence))));
    });
    const asked = Promise.allSettled([connection.settled(context), connection.settled(context)]);
    await unhung('losing it', Promise.all([asked, connection.ended]));
    await assert.rejects(connection.settled(context), troubled('lost'));
  }
});

test('numbers of requests go beyond what the wire has room for', async (t) => {
  let read = 0;
  const connection = await connected(t, (socket, asked) => {
    const answer = (bytes: Buffer) => {
      const from = Math.floor(read / 4);
      read += bytes.length;
      const count = Math.floor(read / 4) - from;
      socket.write(Buffer.concat(Array.from({ length: count }, (_, i) => reply(from + i + 1))));
    };
    answer(asked);
    socket.on('data', answer);
  });
  for (let i = 0; i < 25; i += 1) {
    await Promise.all(Array.from({ length: 3_000 }, () => connection.settled(context)));
  }
  assert.ok(!connection.lost);
});

test('a caller who leaves is answered at once, and the late reply disturbs nobody', async (t) => {
  const asked = Promise.withResolvers<Socket>();
  const connection = await connected(t, asked.resolve);
  const leaving = new AbortController();
  const first = connection.settled(leaving);
  const second = connection.settled(context);
  leaving.abort(new Error('left'));
  await assert.rejects(first, /left/);
  (await asked.promise).write(Buffer.concat([reply(1), reply(2)]));
  await second;
});

test('properties that lie about themselves', async (t) => {
  const lies = [
    // Longer than the reply, of an odd format, and of none.
    { format: 8, items: 1_000_000, left: 0 },
    { format: 7, items: 3, left: 0xffffffff },
    { format: 0, items: 0, left: 0 },
  ];
  for (const { format, items, left } of lies) {
    const connection = await connected(t, (socket) => {
      const answer = Buffer.alloc(24);
      answer.writeUInt32LE(left, 4);
      answer.writeUInt32LE(items, 8);
      const bytes = reply(1, answer);
      bytes[1] = format;
      socket.write(bytes);
    });
    const reading = readProperty(context, connection, 1, 1, 1_000);
    if (format === 0) assert.equal((await reading).value.length, 0);
    else await assert.rejects(reading, DisplayError);
  }
});

test('whatever bytes come after the greeting, every caller is answered', async (t) => {
  const callers: ((connection: Connection) => Promise<unknown>)[] = [
    (connection) => grab(context, connection),
    (connection) => readKeyboard(context, connection),
    (connection) => readWords(context, connection, 1, 2, 1_000),
    (connection) => describeWindow(context, connection, 5, false),
  ];
  const packet = fc.record({
    type: fc.constantFrom(0, 1, 1, 1, 28, 35, 255),
    detail: fc.nat(255),
    sequence: fc.nat(12),
    length: fc.oneof(fc.nat(8), fc.constantFrom(0xffff, 0xffffffff)),
    content: fc.uint8Array({ maxLength: 80 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(packet, { maxLength: 20 }), fc.nat(3), async (packets, which) => {
      const bytes = packets.map(({ type, detail, sequence, length, content }) => {
        const head = Buffer.alloc(8);
        head.set([type, detail, sequence, 0]);
        head.writeUInt32LE(length, 4);
        return Buffer.concat([head, content]);
      });
      const { path } = await FakeServer.of(t, (socket) => socket.end(Buffer.concat(bytes)));
      const connection = await Connection.open({ path, patienceMs: 60_000 });
      const calling = callers[which]?.(connection).catch((error: unknown) => {
        assert.ok(error instanceof DisplayError, String(error));
      });
      await unhung('a caller', Promise.all([calling, connection.ended]));
    }),
    { numRuns: 60 },
  );
});

test('whatever the greeting is answered with, it is understood or refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(300), (noise, length) => {
      const bytes = Buffer.from(setupAnswer());
      bytes.set(noise.subarray(0, bytes.length - 8), 8);
      try {
        readSetup(bytes.subarray(0, length));
      } catch (error) {
        assert.ok(error instanceof RangeError || error instanceof DisplayError, String(error));
      }
    }),
  );
});

test('packets are the same however the stream is cut', () => {
  const content = fc
    .uint8Array({ maxLength: 12 })
    .map((bytes) => Buffer.alloc(4 * bytes.length, 7));
  fc.assert(
    fc.property(fc.array(content), fc.array(fc.nat(2_000)), (contents, places) => {
      const stream = Buffer.concat([
        setupAnswer(),
        ...contents.map((bytes, i) => reply(i + 1, Buffer.concat([Buffer.alloc(24), bytes]))),
      ]);
      const seen: number[] = [];
      let first = true;
      const packets = new Packets({
        measure: (head) => {
          const more = 4 * (first ? head.readUInt16LE(6) : head.readUInt32LE(4));
          return { more, wanted: first || more % 8 === 0 };
        },
        packet: (packet) => {
          if (!first) seen.push(packet.length);
          first = false;
        },
      });
      const cuts = [0, ...places.map((place) => place % (stream.length + 1)), stream.length];
      const sorted = cuts.toSorted((a, b) => a - b);
      for (const [i, end] of sorted.slice(1).entries())
        packets.push(stream.subarray(sorted[i], end));
      const wanted = contents.map(({ length }) => (length % 8 === 0 ? 32 + length : 32));
      assert.deepEqual(seen, wanted);
    }),
  );
});

test('a display that was lost is connected to again', async (t) => {
  const { path, sockets } = await FakeServer.of(t, () => {});
  const display = new Display({ path, patienceMs: 60_000 });
  t.after(() => display.close());
  const first = await display.connection(context);
  assert.equal(await display.connection(context), first);
  sockets[0]?.destroy();
  await first.ended;
  const second = await display.connection(context);
  assert.notEqual(second, first);
  assert.ok(!second.lost);
});
