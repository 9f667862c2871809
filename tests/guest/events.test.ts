// Event streams as a socket drives them: their frames, resuming, slow readers, limits (Part 6.2).

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import fc from 'fast-check';
import { Trees } from '../../packages/host/events/trees.ts';
import { Bucket } from '../../packages/host/guest/bucket.ts';
import { until } from '../support/until.ts';
import { Listening, Reader } from './listening.ts';
import { computer } from './rig.ts';

const own = [
  'process.exited',
  'computer.started',
  'computer.stopped',
  'computer.suspended',
  'computer.idle',
];

/** So many events of the host's own. */
function happen({ events }: Listening, times: number): void {
  for (let i = 0; i < times; i += 1) events.idle(computer, i);
}

test('Part 6.2, wire-guest 11: the hello, and the envelope of an event', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const reader = on.open();
  const { cursor, ...hello } = reader.hello;
  assert.deepEqual(hello, { type: 'hello', computer, ready: false, events: own, windows: [] });
  assert.match(cursor, /^[0-9a-f]{16}:0$/);
  on.events.idle(computer, 60);
  on.events.idle(computer, 61);
  const [first, second] = reader.events;
  const fields = 'type at computer seq cursor source data';
  assert.deepEqual(Object.keys(first), fields.split(' '));
  const { at, ...rest } = first;
  assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const after = (count: number) => cursor.replace(/\d+$/, String(count));
  const envelope = { type: 'computer.idle', computer, source: 'daemon' };
  assert.deepEqual(rest, { ...envelope, seq: 0, cursor: after(1), data: { idle_seconds: 60 } });
  assert.deepEqual([second.seq, second.cursor], [1, after(2)]);
  // One text for all.
  const other = on.open({ account: 'acc-2' });
  on.events.idle(computer, 62);
  assert.equal(reader.texts.at(-1), other.texts.at(-1));
});

test('Part 6.2: a stream goes on from any cursor it was given, without windows', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const whole = on.open();
  happen(on, 40);
  fc.assert(
    fc.property(fc.nat({ max: 40 }), (at) => {
      const since = at === 0 ? whole.hello.cursor : whole.events[at - 1].cursor;
      const reader = on.open({ since });
      assert.equal(reader.hello.cursor, since);
      assert.ok(!('windows' in reader.hello) && !('watching' in reader.hello));
      assert.deepEqual(reader.frames.slice(1), whole.events.slice(at));
      reader.subscription?.end();
    }),
  );
});

test('Part 6.2: a cursor that is not held reads as a gap after the hello, with windows', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const old = on.open();
  happen(on, 2_000);
  const head = old.cursor;
  const elsewhere = await Listening.of(t, { agent: false });
  const strange = elsewhere.open().hello.cursor;
  const beyond = head.replace(/\d+$/, '2001');
  for (const since of [old.hello.cursor, strange, beyond, 'nonsense', '0'.repeat(2_000)]) {
    const reader = on.open({ since });
    const [hello, gap, ...more] = reader.frames;
    assert.deepEqual([hello.cursor, hello.windows, more.length], [head, [], 0]);
    const { at, data, ...rest } = gap;
    assert.deepEqual(rest, { type: 'gap', computer, cursor: head, source: 'daemon' });
    assert.ok(typeof at === 'string' && typeof data.detail === 'string');
    // The oldest cursor that it names is held.
    const again = on.open({ since: data.oldest_cursor });
    assert.ok(again.events.length > 0 && again.events.length < 2_000);
    assert.deepEqual(again.events.at(-1), old.events.at(-1));
    for (const each of [reader, again]) each.subscription?.end();
  }
});

test('Part 6.2: a reader that is full gets nothing more until it drains, and then everything', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const quick = on.open();
  const slow = on.open();
  slow.full = true;
  happen(on, 300);
  // The one that filled it was taken.
  assert.equal(slow.events.length, 1);
  for (let i = 0; slow.events.length < 300; i += 1) {
    slow.full = i % 3 !== 0;
    slow.subscription?.drained();
    if (i % 50 === 0) happen(on, 1);
  }
  slow.drain();
  assert.deepEqual(slow.events, quick.events);
  assert.equal(slow.closed, undefined);
});

test('Part 6.2: a reader that stopped reading is put down, and resumes or hears of the gap', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const slow = on.open();
  slow.full = true;
  happen(on, 5_000);
  assert.deepEqual(
    slow.frames.map(({ type }) => type),
    ['hello', 'computer.idle', 'closed'],
  );
  assert.deepEqual(Object.keys(slow.frames[2]), ['type', 'detail']);
  assert.equal(slow.closed, slow.frames[2].detail);
  slow.drain();
  slow.subscription?.end();
  happen(on, 1);
  assert.equal(slow.frames.length, 3);
  assert.equal(on.open({ since: slow.cursor }).frames[1].type, 'gap');
});

test('Part 8 Sizes, Part 6.2: eight streams a computer, 128 an account, and places come back', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const readers = Array.from({ length: 8 }, () => on.open());
  assert.equal(on.refused(), 'streams_of_computer');
  readers[3]?.subscription?.end();
  readers[3]?.subscription?.end();
  readers.push(on.open());
  assert.equal(on.refused({ account: 'acc-2' }), 'streams_of_computer');
  for (const reader of readers) reader.subscription?.end();
  const others = Array.from({ length: 17 }, (_, i) => `vm-${String(i).padStart(12, '0')}`);
  for (const id of others) {
    on.roster.add(id, id, 'running');
    on.events.found(id, 'running');
  }
  const many = others
    .slice(0, 16)
    .flatMap((id) => Array.from({ length: 8 }, () => on.open({ computer: id })));
  assert.equal(on.refused({ computer: others[16] as string }), 'streams_of_account');
  on.open({ computer: others[16] as string, account: 'acc-2' });
  many[100]?.subscription?.end();
  on.open({ computer: others[16] as string });
  assert.ok(many.every(({ closed }) => closed === undefined));
});

test('Part 8 Sizes, wire-guest 11: four trees a stream, 32 a computer, bad paths refused', async (t) => {
  const on = await Listening.of(t, { agent: false });
  for (const path of ['', 'relative', '/', '/a/..', '/a\nb', `/${'x'.repeat(256)}`]) {
    assert.equal(on.refused({ watches: ['/good', path] }), 'watch_path');
  }
  assert.equal(on.refused({ watches: ['/1', '/2', '/3', '/4', '/5'] }), 'watch_count');
  const same = on.open({ watches: ['/1', '/1/', '/./1', '/x/../1', '/2', '/3', '/4'] });
  assert.deepEqual(
    same.hello.watching,
    ['/1', '/2', '/3', '/4'].map((path) => ({ path, armed: false })),
  );
});

test('Part 8 Sizes: the 33rd tree is refused, and the same trees again are not', () => {
  const asked: string[] = [];
  const links = {
    whenConnected: async () => {},
    watchTree: async (_: unknown, __: string, tree: string) => {
      asked.push(tree);
      return { ok: false, failure: 'no_agent', message: '' } as const;
    },
  };
  const trees = new Trees(computer, links, new Bucket(1, 1, () => 0), () => {});
  const paths = Array.from({ length: 33 }, (_, i) => `/tree/${i}`);
  assert.ok(trees.hasRoomFor(paths.slice(1)));
  assert.ok(!trees.hasRoomFor(paths));
  const letGo = trees.watch(paths.slice(0, 32));
  const again = trees.watch(['/tree/3', '/tree/4']);
  assert.ok(trees.hasRoomFor(['/tree/0', '/tree/31']));
  assert.ok(!trees.hasRoomFor(['/tree/0', '/tree/32']));
  letGo();
  assert.ok(trees.hasRoomFor(paths.slice(0, 32)));
  assert.ok(!trees.hasRoomFor(paths.slice(0, 3).concat(paths.slice(5), ['/x', '/y'])));
  again();
  trees.close();
  assert.deepEqual(asked, []);
});

test('Part 6.2, Part 7 Conflicts 3: what does not run has no stream, and one that is open outlives it', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const open = on.open();
  const resident = on.roster.get(computer);
  assert.ok(resident);
  for (const [status, why] of [
    ['frozen', 'suspended'],
    ['stopped', 'not_running'],
    ['unfinished', 'not_running'],
  ] as const) {
    resident.status = status;
    assert.equal(on.refused(), why);
  }
  assert.equal(on.refused({ computer: 'vm-ffffffffffff' }), 'absent');
  on.events.became(computer, 'stopped');
  on.events.became(computer, 'running');
  assert.equal(open.events.length, 2);
  on.events.heard(computer, { type: 'gone' });
  assert.equal(open.frames.at(-1).type, 'closed');
  assert.equal(typeof open.closed, 'string');
  assert.equal(on.refused(), 'absent');
});

test('Part 6.2: transitions carry what was before, but for the first of a daemon’s life', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const reader = on.open();
  const { events } = on;
  for (const status of [
    'running',
    'stopped',
    'stopped',
    'running',
    'suspended',
    'running',
  ] as const)
    events.became(computer, status);
  events.restarted(computer);
  assert.deepEqual(
    reader.events.map(({ type, source, data }) => [type, source, data]),
    [
      ['computer.stopped', 'daemon', { status: 'stopped' }],
      ['computer.started', 'daemon', { status: 'running', previous: 'stopped' }],
      ['computer.suspended', 'daemon', { status: 'suspended', previous: 'running' }],
      ['computer.started', 'daemon', { status: 'running', previous: 'suspended' }],
      ['computer.started', 'daemon', { status: 'running', previous: 'running' }],
    ],
  );
  const made = 'vm-00000000000a';
  events.building(made);
  on.roster.add(made, made, 'unfinished');
  events.became(made, 'running');
  on.roster.add(made, made, 'running');
  const page = JSON.parse(
    events.signals(made, on.open({ computer: made }).cursor.replace(/\d+$/, '0'), 10) ?? '',
  );
  assert.deepEqual(
    page.events.map(({ data }: { data: object }) => data),
    [{ status: 'running', previous: 'building' }],
  );
});

test('Part 6.2: commands that end in the background, and those that are lost', async (t) => {
  const on = await Listening.of(t);
  const reader = on.open();
  const ended = await on.rig.start('exit 7');
  await until('its end is told', () => reader.data('process.exited').length === 1);
  const lost = await on.rig.start('exec sleep 600');
  await on.rig.killAgent();
  await on.rig.startAgent();
  await until('its loss is told', () => reader.data('process.exited').length === 2);
  assert.deepEqual(reader.data('process.exited'), [
    { execution_id: ended.executionId, pid: ended.pid, exit_code: 7 },
    { execution_id: lost.executionId, pid: lost.pid, lost: true },
  ]);
  assert.ok(reader.events.every((frame) => frame.source === 'daemon'));
});

test('Part 6.2: ready once for each desktop, however often its agent comes back', async (t) => {
  const on = await Listening.of(t);
  const reader = on.open();
  const readies = () => reader.events.filter(({ type }) => type === 'computer.ready');
  await writeFile(on.rig.at('run', 'desktop-ready'), '');
  await until('it is ready', () => readies().length === 1);
  const { source, data } = readies()[0];
  assert.deepEqual([source, data], ['guest', {}]);
  await on.rig.killAgent();
  await on.rig.startAgent();
  await until('the host knows again', () => on.rig.links.ready(computer));
  assert.equal(readies().length, 1);
  await rm(on.rig.at('run', 'desktop-ready'));
  await until('it is gone', () => !on.rig.links.ready(computer));
  await writeFile(on.rig.at('run', 'desktop-ready'), '');
  await until('another is ready', () => readies().length === 2);
});

test('Part 6.2: what a computer can tell comes and goes with its agent', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const reader = on.open();
  const full = on.open();
  full.full = true;
  await on.rig.startAgent();
  const told = await until('it is told', () =>
    reader.frames.find(({ type }) => type === 'capabilities'),
  );
  const { detail, ...rest } = told;
  const withAgent = [...own, 'computer.ready', 'file.changed'];
  assert.deepEqual(rest, { type: 'capabilities', computer, events: withAgent });
  assert.equal(typeof detail, 'string');
  assert.deepEqual(on.open().hello.events, withAgent);
  happen(on, 1);
  await on.rig.killAgent();
  await until('it is away', () => !on.rig.links.connected(computer));
  // That the desktop is watched may have been told in between.
  const newest = reader.frames.at(-1);
  assert.deepEqual([newest.type, newest.events], ['capabilities', own]);
  full.drain();
  // It took one frame before it was full; of those it missed the last counts.
  const last = full.frames.filter(({ type }) => type === 'capabilities').at(-1);
  assert.deepEqual(last.events, own);
});

test('a stream that has not begun hears nothing, and then everything since it begins', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const reader = new Reader();
  const request = { computer, account: 'acc-1', watches: [] };
  const subscribed = on.events.subscribe(request, reader);
  assert.ok(subscribed.ok);
  happen(on, 3);
  assert.equal(reader.frames.length, 0);
  subscribed.subscription.begin();
  happen(on, 1);
  assert.deepEqual(
    reader.frames.map(({ type, seq }) => [type, seq]),
    [
      ['hello', undefined],
      ['computer.idle', 3],
    ],
  );
  on.events.stop();
  assert.equal(reader.frames.at(-1).type, 'closed');
});
