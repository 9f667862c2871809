// Sessions and who is attached to them: names, replay, displacement, limits, refusals (Part 4, Part 8).

import assert from 'node:assert/strict';
import test from 'node:test';
import { GuestLinks } from '../../packages/host/guest/links.ts';
import { Terminals } from '../../packages/host/terminal/terminals.ts';
import { readTerminalQuery, sessionPattern } from '../../packages/contract/terminal.ts';
import { limits } from '../../packages/contract/limits.ts';
import { until } from '../support/until.ts';
import { computer, context, Rig } from './rig.ts';
import { type Client, TerminalRig } from './terminal-client.ts';

const names = (count: number) => Array.from({ length: count }, (_, i) => `s${i}`);

test('Part 4 Terminal: a session outlives its attachment and shows what it showed', async (t) => {
  const rig = await TerminalRig.of(t);
  const first = await rig.open();
  await first.calm();
  first.type('here=still; printf "wr""itten\\nno end"\n');
  await first.shows(/written\r\nno end$/);
  const before = first.text;
  first.attachment.leave();
  assert.equal(first.closed, undefined, 'whoever leaves is told nothing');
  const second = await rig.open();
  await second.shows(/no end$/);
  assert.ok(second.text.endsWith(before));
  // Never input: with no echo, what was typed shows nowhere.
  assert.ok(!second.text.includes('here=still'));
  second.bytes = Buffer.alloc(0);
  second.type('\necho $here\n');
  await second.shows(/^still\r\n/m);
});

test('what happened while nobody was attached is shown', async (t) => {
  const rig = await TerminalRig.of(t);
  const first = await rig.open();
  await first.calm();
  first.type('read x; seq 5; echo mean""while\n');
  first.type('go\n');
  first.attachment.leave();
  const second = await rig.open();
  await second.shows(/1\r\n2\r\n3\r\n4\r\n5\r\nmeanwhile\r\n/);
});

test('of much output the end is shown, from the beginning of a line', async (t) => {
  const rig = await TerminalRig.of(t);
  const first = await rig.open();
  await first.calm();
  first.type('seq 100000 300000; echo do""ne\n');
  await first.shows(/done\r\n$/);
  first.attachment.leave();
  const second = await rig.open();
  await second.shows(/done\r\n$/);
  const lines = second.text.split('\r\n');
  assert.ok(second.bytes.length <= 256 * 1024 && second.bytes.length > 200 * 1024);
  assert.ok(first.text.endsWith(second.text));
  assert.match(lines[0] ?? '', /^\d{6}$/);
});

test('without lines the end begins at least with a whole character', async (t) => {
  const rig = await TerminalRig.of(t);
  const first = await rig.open();
  await first.calm();
  first.type(`/usr/bin/python3 -c 'print("日" * 300001, end="!!")'\n`);
  await first.shows(/!!$/);
  first.attachment.leave();
  const second = await rig.open();
  await second.shows(/!!$/);
  assert.match(second.text, /^日+!!$/);
});

test('Part 4 Terminal: a later attach displaces the earlier', async (t) => {
  const rig = await TerminalRig.of(t);
  const first = await rig.open();
  await first.calm();
  const second = await rig.open('main', { cols: 90, rows: 30 });
  const [frame] = first.frames;
  assert.equal(first.frames.length, 1);
  assert.deepEqual(frame, { type: 'detached', reason: frame?.type === 'detached' && frame.reason });
  assert.equal(first.closed?.code, 1000);
  first.type('echo from the first\n');
  second.type('stty size; echo from the sec""ond\n');
  await second.shows(/^30 90\r\nfrom the second\r\n/m);
  assert.ok(!second.text.includes('from the first'));
  // Many at once: one is left, and it works.
  const all = await Promise.all(Array.from({ length: 8 }, () => rig.open()));
  await until('one is left', () => all.filter(({ closed }) => closed === undefined).length === 1);
  const last = all.find(({ closed }) => closed === undefined) as Client;
  last.type('echo sur""vived\n');
  await last.shows(/survived/);
});

test('Part 4 Terminal: eight sessions, and a ninth name is 409 without a reason', async (t) => {
  const rig = await TerminalRig.of(t);
  const clients = await Promise.all(names(limits.terminalSessions).map((name) => rig.open(name)));
  const refusal = await rig.refused('ninth');
  assert.deepEqual([refusal.status, refusal.reason], [409, undefined]);
  // One that exists may be attached to, attached or not.
  const again = await rig.open('s0');
  clients[1]?.attachment.leave();
  await rig.open('s1');
  // One that ends makes room.
  again.type('exit\n');
  await again.ends();
  await rig.open('ninth');
});

test('Part 4 Terminal: who loses a race for the last session gets an error frame', async (t) => {
  const rig = await TerminalRig.of(t);
  const clients = await Promise.all(names(10).map((name) => rig.open(name)));
  await until('two have lost', () => clients.filter(({ closed }) => closed).length === 2);
  for (const { frames, closed } of clients) {
    if (closed === undefined) continue;
    assert.equal(frames.length, 1);
    assert.deepEqual(Object.keys(frames[0] ?? {}).toSorted(), ['message', 'type']);
    assert.equal(frames[0]?.type, 'error');
  }
  const winner = clients.find(({ closed }) => closed === undefined);
  winner?.type('echo we""ll\n');
  await winner?.shows(/well/);
});

test('Part 8 Sizes: sixteen attachments; then no new session, and old sockets are cut', async (t) => {
  const rig = await TerminalRig.of(t);
  // Displaced, but their sockets linger.
  const clients: Client[] = [];
  for (let i = 0; i < limits.terminalAttachments; i += 1) clients.push(await rig.open('main'));
  assert.equal(clients.filter(({ closed }) => closed === undefined).length, 1);
  const refusal = await rig.refused('new');
  assert.deepEqual([refusal.status, refusal.reason], [409, undefined]);
  assert.match(refusal.message, /16/);
  assert.ok(!clients.some(({ wasCut }) => wasCut));
  clients.push(await rig.open('main'));
  assert.deepEqual(
    clients.map(({ wasCut }) => wasCut),
    clients.map((_, i) => i === 0),
  );
  clients[1]?.attachment.leave();
  clients[1]?.attachment.leave();
  await rig.open('new');
});

test('Part 4 Terminal: the query names session and size, and has defaults', () => {
  const read = (query: string) => readTerminalQuery(new URLSearchParams(query));
  assert.deepEqual(read('token=x'), { session: 'main', cols: 80, rows: 24 });
  assert.deepEqual(read('session=a&cols=100&rows=30'), { session: 'a', cols: 100, rows: 30 });
  assert.deepEqual(read('cols=0&rows=99999'), { session: 'main', cols: 1, rows: 4_096 });
  for (const query of ['session=', 'session=a/b', 'cols=', 'cols=8.5', 'rows=-1', 'rows=1e3']) {
    assert.equal(read(query), undefined, query);
  }
});

test('names are bounded, and the longest works', async (t) => {
  const rig = await TerminalRig.of(t);
  const longest = 'n'.repeat(64);
  for (const name of ['main', 'a.b_c-d', '0', longest]) assert.match(name, sessionPattern);
  for (const name of ['', '.', '..', '.x', '-x', 'a/b', 'a b', 'ü', `${longest}n`, 'a\n']) {
    assert.doesNotMatch(name, sessionPattern);
  }
  const client = await rig.open(longest);
  client.type('echo we""ll\n');
  await client.shows(/well/);
});

test('Part 4 Terminal: refusals of an upgrade say what helps', async (t) => {
  const rig = new TerminalRig(await Rig.of(t, { agent: false }));
  const { message: _, ...silent } = await rig.refused();
  assert.deepEqual(silent, { ok: false, status: 502 });
  rig.starting = true;
  const { message: __, ...starting } = await rig.refused();
  assert.deepEqual(starting, { ok: false, status: 409, reason: 'starting' });
  rig.state = 'suspended';
  const { message: ___, ...suspended } = await rig.refused();
  assert.deepEqual(suspended, {
    ok: false,
    status: 409,
    reason: 'unavailable',
    resumeRequired: true,
  });
  rig.state = 'not_running';
  const { message: ____, ...stopped } = await rig.refused();
  assert.deepEqual(stopped, { ok: false, status: 409, reason: 'unavailable' });
  const nowhere = new Terminals(new GuestLinks(), {
    state: async () => 'running',
    starting: () => false,
  });
  const asked = { session: 'main', cols: 80, rows: 24 };
  assert.equal((await nowhere.attach(context, computer, asked)).ok, false);
});

test('a session of a suspended computer takes nobody, and is found again when it resumes', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type('here=still\n');
  rig.rig.agent?.kill('SIGSTOP');
  rig.state = 'suspended';
  assert.equal((await rig.refused()).resumeRequired, true);
  rig.rig.agent?.kill('SIGCONT');
  rig.state = 'running';
  const back = await rig.open();
  back.type('echo $here\n');
  await back.shows(/^still\r\n/m);
});

test('an attach that is given up ends with its signal and takes no place', async (t) => {
  const rig = await TerminalRig.of(t);
  rig.rig.agent?.kill('SIGSTOP');
  const control = new AbortController();
  const asked = { session: 'main', cols: 80, rows: 24 };
  const attaching = rig.terminals.attach(control, computer, asked);
  const rejected = assert.rejects(attaching, /enough/);
  await new Promise(setImmediate);
  control.abort(new Error('enough'));
  await rejected;
  rig.rig.agent?.kill('SIGCONT');
  const client = await rig.open();
  client.type('echo we""ll\n');
  await client.shows(/well/);
});
