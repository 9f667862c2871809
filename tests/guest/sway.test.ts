// What the agent makes of sway's words, without a sway: trees, messages, maps of the keyboard. How the
// whole works on a desktop is proven in tests/computers/tiling.test.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { keysOfText } from '../../packages/contract/desktop/typed-text.ts';
import { askSway, swayEvents } from '../../packages/guest/sway/ipc.ts';
import { Keymap } from '../../packages/guest/sway/keymap.ts';
import { screenOf, windowsOf } from '../../packages/guest/sway/tree.ts';
import { encode, Messages, readText } from '../../packages/guest/sway/wire.ts';

const context = { signal: new AbortController().signal };
const rect = { x: 8, y: 8, width: 600, height: 400 };
const view = (id: number, more: object = {}) => ({
  type: 'con',
  id,
  pid: 7,
  app_id: 'foot',
  name: 'a title',
  rect,
  focused: false,
  visible: true,
  ...more,
});

test('windows are the leaves of the tree: tiled first, put away ones hidden', () => {
  const tree = {
    type: 'root',
    nodes: [
      {
        type: 'output',
        nodes: [
          {
            type: 'workspace',
            name: '1',
            nodes: [{ type: 'con', id: 2, nodes: [view(3), view(4, { focused: true })] }],
            floating_nodes: [
              view(0xfe, {
                type: 'floating_con',
                app_id: null,
                window_properties: { class: 'XTerm' },
                deco_rect: { height: 24 },
              }),
            ],
          },
        ],
      },
      {
        type: 'output',
        nodes: [{ type: 'workspace', name: '__i3_scratch', floating_nodes: [view(9)] }],
      },
    ],
  };
  const windows = windowsOf(tree);
  assert.deepEqual(
    windows.map(({ info, floating, hidden }) => [info.id, info.class, floating, hidden]),
    [
      ['0x3', 'foot', false, false],
      ['0x4', 'foot', false, false],
      ['0xfe', 'XTerm', true, false],
      ['0x9', 'foot', false, true],
    ],
  );
  const { x, y, width, height } = windows[2]?.info ?? assert.fail('no window');
  assert.deepEqual([x, y, width, height], [8, 8 - 24, 600, 400 + 24], 'with its title bar');
});

test('a tree that is none has no windows, and a deep one ends', () => {
  for (const odd of [null, 7, 'x', [], { nodes: 7 }, { nodes: [null, 7] }]) {
    assert.deepEqual(windowsOf(odd), []);
  }
  let deep: object = view(5);
  for (let i = 0; i < 10_000; i += 1) deep = { type: 'con', nodes: [deep] };
  assert.deepEqual(windowsOf(deep), []);
  const strange = {
    type: 'con',
    nodes: [view(-1), view(1.5), view(2 ** 40), view(6, { rect: 0 })],
  };
  assert.deepEqual(
    windowsOf(strange).map(({ info }) => [info.id, info.width]),
    [['0x6', 1]],
  );
  const many = { type: 'con', nodes: Array.from({ length: 600 }, (_, i) => view(i + 1)) };
  assert.equal(windowsOf(many).length, 500);
});

test('the screen is what the active outputs cover', () => {
  const outputs = [
    { active: true, rect: { x: 0, y: 0, width: 1280, height: 800 } },
    { active: false, rect: { x: 1280, y: 0, width: 1920, height: 1080 } },
  ];
  assert.deepEqual(screenOf(outputs), { width: 1280, height: 800 });
  assert.equal(screenOf([]), undefined);
  assert.equal(screenOf({ x: 1 }), undefined);
});

test('messages are told apart however they arrive', () => {
  const sent = [encode(3, 1, 7, 'wl_seat', 2), encode(9, 0, -1)];
  const bytes = Buffer.concat(sent);
  const messages = new Messages();
  const heard = [...bytes].flatMap((byte) => [...messages.feed(Buffer.from([byte]))]);
  assert.deepEqual(
    heard.map(({ object, opcode }) => [object, opcode]),
    [
      [3, 1],
      [9, 0],
    ],
  );
  assert.deepEqual(readText(heard[0]?.body ?? assert.fail('no message'), 4), {
    value: 'wl_seat',
    end: 16,
  });
  assert.throws(() => [...new Messages().feed(Buffer.alloc(8))], RangeError);
});

test('every character of a text is on a key in its turn, and no key has two', () => {
  const keymap = new Keymap();
  const { symbols } = keysOfText('Grüße, 世界! Ελλάδα łódź €½ñœ 日本語 🎉');
  for (let at = 0; at < symbols.length;) {
    const count = keymap.fitting(symbols.slice(at));
    assert.ok(count > 0);
    const some = symbols.slice(at, at + count);
    keymap.lend(some);
    assert.equal(keymap.lend(some), false, 'it is there already');
    const found = new Map(some.map((symbol) => [symbol, keymap.find(symbol)]));
    const places = [...found.values()].map((key) => `${key?.code} ${key?.shifted}`);
    assert.ok([...found.values()].every((key) => key !== undefined));
    assert.equal(new Set(places).size, found.size);
    for (const symbol of some) {
      const code = keymap.find(symbol)?.code ?? 0;
      if (symbol > 0xffff) {
        assert.ok(keymap.file().includes(`key <C${code}> { [ 0x${symbol.toString(16)} ] };`));
      }
    }
    at += count;
  }
});

async function fakeSway(t: TestContext, serve: (socket: Socket) => void): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-sway-'));
  const path = join(folder, 'sway.sock');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    serve(socket);
  });
  await once(server.listen(path), 'listening');
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(folder, { recursive: true, force: true });
  });
  return path;
}

function said(kind: number, body: string, length = body.length): Buffer {
  const header = Buffer.alloc(14);
  header.write('i3-ipc');
  header.writeUInt32LE(length, 6);
  header.writeUInt32LE(kind, 10);
  return Buffer.concat([header, Buffer.from(body)]);
}

test('an answer of sway’s is read whole, and one that is none is trouble', async (t) => {
  const answers = [said(4, '{"id":1}'), said(4, '{'), said(4, '', 2 ** 31), Buffer.alloc(0)];
  const path = await fakeSway(t, (socket) => {
    const bytes = answers.shift() ?? Buffer.alloc(0);
    socket.write(bytes.subarray(0, 5));
    socket.end(bytes.subarray(5));
  });
  assert.deepEqual(await askSway(context, path, 'tree'), { id: 1 });
  for (const _ of Array.from({ length: 3 })) {
    await assert.rejects(askSway(context, path, 'tree'), { trouble: 'lost' });
  }
  await assert.rejects(askSway(context, `${path}-not`, 'tree'), { trouble: 'lost' });
});

test('events are heard one by one until sway ends', async (t) => {
  const path = await fakeSway(t, (socket) => {
    socket.end(Buffer.concat([said(2, '{"success":true}'), said(0x80000003, '{}')]));
  });
  const heard = await Array.fromAsync(swayEvents(context, path));
  assert.equal(heard.length, 2);
});
