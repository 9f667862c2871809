// What a guest reports about itself may all be lies: shapes, counts and rates are bounded, what does not fit
// is told as a gap, and nothing of it reaches another computer.

import assert from 'node:assert/strict';
import test from 'node:test';
import type { DesktopReport, DesktopWindow } from '../../packages/contract/guest/messages.ts';
import { limits } from '../../packages/contract/limits.ts';
import { until } from '../support/until.ts';
import { FakeAgent } from './fake-agent.ts';
import { Listening } from './listening.ts';
import { computer } from './rig.ts';

const window = (n: number, more: Partial<DesktopWindow> = {}): DesktopWindow => ({
  id: `0x${n.toString(16)}`,
  title: `Window ${n}`,
  class: 'xterm',
  type: 'normal',
  pid: 7,
  x: -1,
  y: 2,
  width: 300,
  height: 200,
  focused: false,
  visible: true,
  ...more,
});

async function reporting(on: Listening) {
  const reader = on.open();
  const agent = await FakeAgent.of(on.rig);
  const tell = (report: DesktopReport) => agent.say('event', 0, report);
  return { reader, agent, tell };
}

test('Part 6.2: windows and the clipboard as a desktop tells them', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const { reader, tell } = await reporting(on);
  tell({ type: 'watcher', live: true });
  tell({ type: 'window.opened', window: window(1) });
  tell({ type: 'window.opened', window: window(2, { pid: null }) });
  tell({ type: 'window.focused', window: window(2, { pid: null, focused: true }) });
  tell({ type: 'window.blurred', id: '0x2' });
  tell({ type: 'window.closed', id: '0x1' });
  // Never described, so never closed.
  tell({ type: 'window.closed', id: '0x9' });
  tell({ type: 'clipboard.changed', selection: 'primary' });
  await until('all is told', () => reader.data('clipboard.changed').length === 1);
  const { pid: _, ...nameless } = window(2);
  assert.deepEqual(
    reader.events
      .filter(({ type }) => type !== 'computer.ready')
      .map(({ type, data }) => [type, data]),
    [
      ['window.opened', window(1)],
      ['window.opened', nameless],
      ['window.focused', { ...nameless, focused: true }],
      ['window.blurred', { id: '0x2' }],
      ['window.closed', { id: '0x1' }],
      ['clipboard.changed', { selection: 'primary' }],
    ],
  );
  assert.ok(reader.events.every(({ source }) => source === 'guest'));
  const { windows, events, ready } = on.open().hello;
  assert.deepEqual([windows, ready], [[nameless], true]);
  assert.ok(events.includes('window.opened') && events.includes('clipboard.changed'));
  // A watcher that begins again: what it described is closed, and announced anew.
  tell({ type: 'watcher', live: true });
  tell({ type: 'window.opened', window: window(3) });
  await until('the new one is told', () => reader.data('window.opened').length === 3);
  assert.deepEqual(reader.data('window.closed'), [{ id: '0x1' }, { id: '0x2' }]);
  // The next session begins without them.
  on.events.became(computer, 'stopped');
  on.events.became(computer, 'running');
  assert.deepEqual(on.open().hello.windows, []);
});

test('Part 8 Sizes: 200 windows and the focused one are described', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const { reader, tell } = await reporting(on);
  for (let n = 0; n < 300; n += 1) tell({ type: 'window.opened', window: window(n) });
  const beyond = window(500, { focused: true });
  tell({ type: 'window.focused', window: beyond });
  await until('the focus is told', () => reader.data('window.focused').length === 1);
  assert.equal(reader.data('window.opened').length, limits.windowsDescribed);
  const { windows } = on.open().hello;
  assert.equal(windows.length, limits.windowsDescribed + 1);
  assert.deepEqual(
    windows.filter(({ focused }: DesktopWindow) => focused),
    [beyond],
  );
  // Without the focus it is described no longer, which its close says.
  tell({ type: 'window.focused', window: window(7) });
  await until('it is dropped', () => reader.data('window.closed').length === 1);
  assert.deepEqual(reader.data('window.closed'), [{ id: beyond.id }]);
  assert.equal(on.open().hello.windows.length, limits.windowsDescribed);
  // A place that comes free is taken.
  tell({ type: 'window.closed', id: '0x8' });
  tell({ type: 'window.opened', window: window(299) });
  await until('it is described', () => reader.data('window.opened').at(-1).id === '0x12b');
});

test('reports beyond what is passed on are told as a gap, which who resumes learns too', async (t) => {
  const on = await Listening.of(t, { agent: false });
  const bystander = 'vm-00000000000b';
  on.roster.add(bystander, bystander, 'running');
  on.events.found(bystander, 'running');
  const other = on.open({ computer: bystander });
  const reader = on.open();
  const before = reader.hello.cursor;
  const tell = (report: DesktopReport) => on.events.heard(computer, { type: 'report', report });
  for (let i = 0; i < 20_000; i += 1) tell({ type: 'clipboard.changed', selection: 'clipboard' });
  const gap = await until('the gap is told', () =>
    reader.frames.find(({ type }) => type === 'gap'),
  );
  assert.ok(!('seq' in gap) && typeof gap.data.detail === 'string');
  assert.ok(reader.events.length < 2_000, String(reader.events.length));
  const again = on.open({ since: before });
  assert.deepEqual(
    again.frames.slice(1),
    reader.frames.filter(({ cursor, type }) => cursor !== undefined && type !== 'hello'),
  );
  // The host's own word is not in it, and another computer hears nothing.
  on.events.idle(computer, 1);
  assert.equal(reader.data('computer.idle').length, 1);
  assert.equal(other.frames.length, 1);
  const page = JSON.parse(on.events.signals(computer, before, 10) ?? '');
  assert.deepEqual(
    page.events.map(({ type }: { type: string }) => type),
    ['computer.idle'],
  );
});

const forged: Record<string, unknown> = {
  'a window without a title': { type: 'window.opened', window: { id: '0x1' } },
  'a title too long': { type: 'window.opened', window: window(1, { title: 'x'.repeat(257) }) },
  'half a character': { type: 'window.opened', window: window(1, { title: '\ud800' }) },
  'an id that is none': { type: 'window.closed', id: '1' },
  'a type of window that is none': { type: 'window.focused', window: window(1, { type: '<b>' }) },
  'another computer’s name': { type: 'window.closed', id: '0x1', computer: 'vm-00000000000b' },
  'a host’s event': { type: 'computer.stopped', status: 'stopped' },
  'a file outside any watch': { type: 'file.changed', path: '/etc/passwd', kind: 'deleted' },
  'another selection': { type: 'clipboard.changed', selection: 'secondary' },
};

for (const [what, event] of Object.entries(forged)) {
  test(`a report that is none ends the connection: ${what}`, async (t) => {
    const on = await Listening.of(t, { agent: false });
    const { reader, agent } = await reporting(on);
    const before = reader.events.length;
    agent.say('event', 0, event as object);
    await agent.ended();
    await until('it is away', () => !on.rig.links.connected(computer));
    assert.equal(reader.events.length, before);
  });
}

const noNews: Record<string, string> = {
  'a path elsewhere': '{"path":"/etc/passwd","kind":"deleted","dir":false}\n',
  'a path that leads out': '{"path":"/tree/../etc","kind":"deleted","dir":false}\n',
  'the tree itself': '{"path":"/tree","kind":"deleted","dir":true}\n',
  'another kind': '{"path":"/tree/a","kind":"renamed","dir":false}\n',
  'a line without end': 'x'.repeat(60_000),
  'no JSON': 'armed\n',
  'more than is asked': '{"armed":true,"watch":"/other"}\n',
  'never armed': '{"armed":false}\n',
};

for (const [what, line] of Object.entries(noNews)) {
  test(`news of a tree that are none end the connection: ${what}`, async (t) => {
    const on = await Listening.of(t, { agent: false });
    const agent = await FakeAgent.of(on.rig);
    const reader = on.open({ watches: ['/tree'] });
    const channel = await agent.asked();
    agent.say('accept', channel, {});
    agent.say('data', channel, Buffer.from('{"armed":true}\n{"path":"/tree/a","ki'));
    agent.say('data', channel, Buffer.from('nd":"created","dir":false}\n'));
    await until('what is good is told', () => reader.data('file.changed').length === 2);
    agent.say('data', channel, Buffer.from(line));
    await agent.ended();
    await until('it is away', () => !on.rig.links.connected(computer));
    assert.deepEqual(reader.data('file.changed'), [
      { watch: '/tree', armed: true },
      { watch: '/tree', path: '/tree/a', kind: 'created' },
    ]);
    assert.deepEqual(on.open({ watches: ['/tree'] }).hello.watching, [
      { path: '/tree', armed: false },
    ]);
  });
}

test('a guest that tells of files without end is held back, and costs no memory', async (t) => {
  // Time stands still: what it may tell at once is all it may tell.
  const clock = { now: () => 0, date: () => new Date() };
  const on = await Listening.of(t, { agent: false, clock });
  const agent = await FakeAgent.of(on.rig);
  const reader = on.open({ watches: ['/tree'] });
  const channel = await agent.asked();
  agent.say('accept', channel, {});
  const lines = '{"path":"/tree/a","kind":"modified","dir":false}\n'.repeat(1_000);
  for (let i = 0; i < 5; i += 1) agent.say('data', channel, Buffer.from(lines));
  const told = () => reader.data('file.changed').length;
  await until('what it may tell is told', () => told() >= 4_096);
  assert.deepEqual([told(), agent.closed], [4_096, false]);
  const granted = agent.heard
    .filter(({ type }) => type === 'credit')
    .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
  assert.ok(granted < 5 * lines.length, String(granted));
});
