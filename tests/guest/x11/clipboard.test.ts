// The clipboard between us and real programs.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { Clipboard } from '../../../packages/guest/x11/selection/clipboard.ts';
import { signal } from '../../support/process.ts';
import { until } from '../../support/until.ts';
import { context, DesktopRig, lacking } from './desktop-rig.ts';

const skip = lacking('xclip', 'pgrep');
const most = 131_072;

let rig: DesktopRig;
let clipboard: Clipboard;

before(async () => {
  if (skip !== false) return;
  rig = await DesktopRig.start({ manager: false });
  clipboard = new Clipboard(rig.display);
});
after(() => rig?.end());

const inClipboard = ['-selection', 'clipboard'];
const paste = (...args: readonly string[]) => rig.run('xclip', ['-o', ...inClipboard, ...args]);

/** By another program, which serves it in the background. */
async function copy(text: string, ...args: readonly string[]): Promise<void> {
  await rig.run('xclip', ['-i', ...inClipboard, ...args], text);
}

/** Another program has taken it a moment after it says so. */
function reads(text: string): Promise<boolean> {
  return until('the clipboard has it', async () => (await clipboard.read(context)) === text);
}

test('an empty clipboard is an empty text', { skip }, async () => {
  assert.equal(await clipboard.read(context), '');
});

test('what another program copies is read, however long, up to the limit', { skip }, async () => {
  for (const text of ['short', 'Grüße 日本 😀\n\ttab', 'z'.repeat(most), 'ä'.repeat(most / 2)]) {
    await copy(text);
    await reads(text);
  }
  // At once and piece by piece: never cut.
  for (const length of [most + 1, 3_000_000]) {
    await copy('y'.repeat(length));
    await until('it is too large', () =>
      clipboard.read(context).then(
        () => false,
        (error: { trouble?: string }) => error.trouble === 'too_large',
      ),
    );
  }
  await copy('pieces', '-t', 'STRING');
  await reads('pieces');
});

test('what is written is read by another program, however long', { skip }, async () => {
  for (const text of ['a', 'Grüße 日本 😀\n', 'ä'.repeat(32_768), 'abc\n'.repeat(most / 4)]) {
    await clipboard.write(context, text);
    assert.ok(clipboard.owned);
    assert.equal(await paste(), text);
    assert.equal(await clipboard.read(context), text);
  }
  await assert.rejects(clipboard.write(context, 'a'.repeat(most + 1)), { trouble: 'too_large' });
});

test('it is served in the forms that it has', { skip }, async () => {
  await clipboard.write(context, 'déjà');
  const targets = (await paste('-t', 'TARGETS')).trim().split('\n').toSorted();
  const forms = [
    'STRING',
    'TARGETS',
    'TEXT',
    'TIMESTAMP',
    'UTF8_STRING',
    'text/plain;charset=utf-8',
  ];
  assert.deepEqual(targets, forms);
  assert.equal(await paste('-t', 'TEXT'), 'déjà');
  assert.equal(await paste('-t', 'text/plain;charset=utf-8'), 'déjà');
  assert.match(await paste('-t', 'TIMESTAMP'), /\d/);
  assert.equal(await paste('-t', 'image/png'), '');
  await clipboard.write(context, '日本');
  assert.ok(!(await paste('-t', 'TARGETS')).includes('\nSTRING\n'));
});

test('it is lost to another program, which is noticed', { skip }, async () => {
  await clipboard.write(context, 'ours');
  assert.ok(clipboard.owned);
  await copy('theirs');
  await until('it is lost', () => !clipboard.owned);
  await reads('theirs');
  await clipboard.write(context, 'ours again');
  assert.equal(await paste(), 'ours again');
});

test('an empty text clears it, whoever has it', { skip }, async () => {
  await clipboard.write(context, 'ours');
  await clipboard.write(context, '');
  assert.equal(await clipboard.read(context), '');
  assert.ok(!clipboard.owned);
  await copy('theirs');
  await reads('theirs');
  await clipboard.write(context, '');
  assert.equal(await clipboard.read(context), '');
});

test('several readers and writers do not disturb each other', { skip }, async () => {
  const writes = ['one', 'two', 'three'].map((text) => clipboard.write(context, text));
  await Promise.all(writes);
  const long = 'x'.repeat(100_000);
  await clipboard.write(context, long);
  const texts = await Promise.all(Array.from({ length: 5 }, () => clipboard.read(context)));
  assert.ok(texts.every((text) => text === long));
  assert.equal(await paste(), long);
});

test('an owner that does not answer is an error in time', { skip }, async (t) => {
  // In the foreground it writes nothing and serves until it is ended.
  const owner = rig.launch(
    'sh',
    '-c',
    `printf stopped | exec xclip -i -quiet ${inClipboard.join(' ')}`,
  );
  await reads('stopped');
  const pids = (await rig.run('pgrep', ['-P', String(owner.pid)])).trim().split('\n').map(Number);
  const stopped = [owner.pid as number, ...pids].filter((pid) => pid > 0);
  // The first program of the pipe may just be over.
  for (const pid of stopped) signal(pid, 'SIGSTOP');
  t.after(() => {
    for (const pid of stopped) signal(pid, 'SIGKILL');
  });
  await assert.rejects(clipboard.read(context), { trouble: 'silent' });
  const leaving = AbortSignal.abort(new Error('left'));
  await assert.rejects(clipboard.read({ signal: leaving }), /left/);
  // It can be taken from it all the same.
  await clipboard.write(context, 'ours');
});
