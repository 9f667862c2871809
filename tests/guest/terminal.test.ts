// Terminals through the shipped agent: real shells on real ptys (Part 4, Terminal socket).

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { limits } from '../../packages/contract/limits.ts';
import { until } from '../support/until.ts';
import { Rig } from './rig.ts';
import { TerminalRig } from './terminal-client.ts';

const needsRoot = { skip: process.getuid?.() !== 0 && 'needs root' };

test('Part 4 Terminal: a login shell echoes, runs, and knows its terminal', async (t) => {
  const rig = await TerminalRig.of(t);
  await writeFile(rig.rig.at('run', 'session.env'), 'DISPLAY=:7\n');
  const client = await rig.open();
  client.type('echo ty""ped $TERM $DISPLAY $HOME $(tty | cut -c1-9) $0\n');
  const shown = await client.shows(/typed (.*)\r\n/);
  assert.equal(shown[1], `xterm-256color :7 ${rig.rig.at('root')} /dev/pts/ -bash`);
  assert.match(client.text, /ty""ped/);
  client.type('shopt -q login_shell && echo log""in; pwd\n');
  await client.shows(/login\r\n/);
  await client.shows(new RegExp(`^${rig.rig.at('root')}\r\n`, 'm'));
});

test('a shell that ends at once is seen to end', needsRoot, async (t) => {
  const bare = await Rig.of(t, { agent: false });
  const rig = new TerminalRig(bare);
  // Accounts that every Debian has: the shell of one is nologin, of the other /bin/sync.
  await bare.startAgent({ CUBICLE_USER: 'games' });
  const refused = await rig.open();
  assert.deepEqual(await refused.ends(), { type: 'exit', code: 1 });
  assert.match(refused.text, /not available/);
  await bare.killAgent();
  await bare.startAgent({ CUBICLE_USER: 'sync' });
  assert.deepEqual(await (await rig.open()).ends(), { type: 'exit', code: 0 });
});

test('Part 4 Terminal: a resize is seen by the shell, and one that makes no sense is not', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open('main', { cols: 101, rows: 37 });
  await client.calm();
  const size = async (expected: string) => {
    client.type('stty size\n');
    await client.shows(new RegExp(`^${expected}\r\n`, 'm'));
  };
  await size('37 101');
  client.attachment.text('{"type":"resize","cols":120,"rows":50}');
  await size('50 120');
  client.attachment.text('{"type":"resize","cols":0,"rows":1000000}');
  await size('4096 1');
  client.type('trap "echo re""sized" WINCH; echo s""et; until false; do :; done\n');
  await client.shows(/set/);
  client.attachment.resize(80, 25);
  await client.shows(/resized/);
  client.type('\u0003');
  for (const frame of [
    'resize',
    '{}',
    '[]',
    'null',
    '{"type":"resize","cols":"80","rows":24}',
    '{"type":"resize","cols":80.5,"rows":24}',
    '{"type":"input","cols":80,"rows":24}',
  ]) {
    const victim = await rig.open('other');
    victim.attachment.text(frame);
    assert.equal(victim.closed?.code, 1008, frame);
    victim.attachment.leave();
  }
  assert.equal(client.closed, undefined);
});

test('colours, control characters and all bytes pass as they are', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type(`stty -opost; printf '\\033[1;31mred\\033[0m\\007\\200\\377'; tput setaf 2; echo\n`);
  await client.shows(/red/);
  const expected = Buffer.from('\u001b[1;31mred\u001b[0m\u0007', 'latin1');
  await until('all of it', () => client.bytes.includes('\u001b[32m'));
  assert.equal(client.bytes.indexOf(expected), 0);
  assert.deepEqual([...client.bytes.subarray(expected.length, expected.length + 2)], [0x80, 0xff]);
});

test('a character that is cut across frames arrives whole, and is erased whole', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  for (const byte of Buffer.from('echo grüße 🖥 日本\n')) client.attachment.input(Buffer.of(byte));
  await client.shows(/^grüße 🖥 日本\r\n/m);
  client.type('cat\n');
  client.type('aü\u007f\u007fb日\u007fc\n');
  await client.shows(/^bc\r\n/m);
});

test('Part 4 Terminal: the exit code is told, and then the socket is closed', async (t) => {
  const rig = await TerminalRig.of(t);
  for (const [command, code] of [
    ['exit 0', 0],
    ['exit 7', 7],
    ['exit 255', 255],
    ['kill -9 $$', 137],
    ['exec sh -c "kill -TERM \\$\\$"', 143],
    ['exec /nonexistent/at/all; exit 9', 9],
  ] as const) {
    const client = await rig.open();
    client.type(`${command}\n`);
    assert.deepEqual(await client.ends(), { type: 'exit', code }, command);
    assert.equal(client.closed?.code, 1000);
    assert.equal(client.frames.length, 1);
    client.attachment.leave();
  }
});

test('all that was written before the exit comes before it', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type('seq 100000; echo the end; exit 3\n');
  assert.deepEqual(await client.ends(), { type: 'exit', code: 3 });
  assert.match(client.text, /^1\r\n2\r\n/);
  assert.match(client.text, /\r\n99999\r\n100000\r\nthe end\r\n(exit|logout)?(\r\n)?$/);
});

test('a program that writes byte by byte is shown whole', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type(
    'dd if=/dev/zero bs=1 count=200000 status=none | tr "\\0" x | dd bs=1 status=none; echo do""ne\n',
  );
  await client.shows(/^x{200000}done\r\n/);
});

test('a shell that leaves others writing on its terminal is over all the same', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type(`(trap "" HUP; exec yes) & exit 4\n`);
  assert.deepEqual(await client.ends(), { type: 'exit', code: 4 });
  // And the name is free.
  const next = await rig.open();
  next.type('echo ne""w\n');
  await next.shows(/new/);
});

test('a shell that lets go of its terminal and lives on is no end', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  const go = rig.rig.at('files', 'go');
  const wait = `while [ ! -e ${go} ]; do sleep 0.02; done`;
  client.type(`exec sh -c 'exec <&- >&- 2>&-; ${wait}; exec >/dev/tty; echo ba""ck; exit 5'\n`);
  await client.shows(/^$/m);
  await writeFile(go, '');
  await client.shows(/back/);
  assert.deepEqual(await client.ends(), { type: 'exit', code: 5 });
});

test('Part 8 Sizes: an input frame of 1 MiB passes whole', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  const file = rig.rig.at('files', 'got');
  client.type(
    `stty raw; echo rea""dy; head -c ${limits.terminalInput} >${file}; stty -raw; cksum <${file}\n`,
  );
  await client.shows(/ready/);
  const frame = Buffer.alloc(limits.terminalInput, 'abcdefghijklmnopqrstuvwxyz\n');
  client.attachment.input(frame);
  await client.shows(new RegExp(`^\\d+ ${limits.terminalInput}\r?\n`, 'm'));
  assert.deepEqual(await rig.rig.content(file), frame);
  // And what has passed is pending no more: there is room for another.
  client.type('stty raw; echo ag""ain; head -c 1048570 >/dev/null; stty -raw; echo do""ne\n');
  await client.shows(/again/);
  client.attachment.input(frame.subarray(0, 1_048_570));
  await client.shows(/done/);
  assert.equal(client.closed, undefined);
});
