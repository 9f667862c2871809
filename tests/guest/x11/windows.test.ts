// Windows of real programs under a real window manager.

import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { actOnWindow } from '../../../packages/guest/x11/windows/window-actions.ts';
import { shortened } from '../../../packages/guest/desktop/window-text.ts';
import type { WindowInfo } from '../../../packages/guest/desktop/window.ts';
import { listWindows } from '../../../packages/guest/x11/windows/window-list.ts';
import { signal } from '../../support/process.ts';
import { until } from '../../support/until.ts';
import { context, DesktopRig, lacking, stop } from './desktop-rig.ts';

const skip = lacking('xterm', 'xdotool', 'xwininfo');

let rig: DesktopRig;

before(async () => {
  if (skip === false) rig = await DesktopRig.start();
});
after(() => rig?.end());

const connection = () => rig.display.connection(context);
const list = async (all = false) => listWindows(context, await connection(), { all });
const act = async (id: string, asked: Parameters<typeof actOnWindow>[3]) =>
  actOnWindow(context, await connection(), id, asked);

async function opened(t: test.TestContext, title: string, ...args: readonly string[]) {
  const xterm = rig.launch('xterm', '-T', title, ...args);
  t.after(() => stop(xterm));
  const window = await until('the window is listed', async () =>
    (await list()).find((listed) => listed.pid === xterm.pid && listed.focused),
  );
  return { xterm, window };
}

function boxOf({ x, y, width, height }: WindowInfo) {
  return { x, y, width, height };
}

test('a window is described as its user sees it', { skip }, async (t) => {
  assert.deepEqual(await list(), []);
  const { xterm, window } = await opened(t, 'Grüße 日本', '-geometry', '40x10+200+150');
  assert.match(window.id, /^0x[0-9a-f]+$/);
  assert.equal(window.title, 'Grüße 日本');
  assert.equal(window.class, 'XTerm');
  assert.equal(window.type, 'normal');
  assert.equal(window.pid, xterm.pid);
  assert.equal(window.visible, true);
  // The frame is the window around it.
  const tree = await rig.run('xwininfo', ['-id', window.id, '-tree']);
  const frame = /Parent window id: (0x[0-9a-f]+)/.exec(tree)?.[1] as string;
  const measured = await rig.run('xwininfo', ['-id', frame]);
  const number = (name: string) => Number(new RegExp(`${name}: +(-?\\d+)`).exec(measured)?.[1]);
  assert.deepEqual(boxOf(window), {
    x: number('Absolute upper-left X'),
    y: number('Absolute upper-left Y'),
    width: number('Width'),
    height: number('Height'),
  });
});

test('windows lie on each other in the order of the list', { skip }, async (t) => {
  const first = await opened(t, 'first');
  const second = await opened(t, 'second');
  const titles = async () => (await list()).map(({ title }) => title);
  assert.deepEqual(await titles(), ['first', 'second']);
  const { window } = await act(first.window.id, { action: 'raise' });
  assert.deepEqual(await titles(), ['second', 'first']);
  assert.equal(window?.focused, false);
  assert.equal((await act(first.window.id, { action: 'focus' })).window?.focused, true);
  assert.deepEqual(
    (await list()).map(({ focused }) => focused),
    [false, true],
  );
  assert.equal((await act(second.window.id, { action: 'focus' })).window?.focused, true);
  assert.deepEqual(await titles(), ['first', 'second']);
});

test('every action does what it says', { skip }, async (t) => {
  const { window } = await opened(t, 'actions', '-geometry', '60x15+300+200');
  const { id } = window;
  const maximized = await act(id, { action: 'maximize' });
  assert.deepEqual(boxOf(maximized.window as WindowInfo), { x: 0, y: 0, width: 1280, height: 800 });
  const back = await act(id, { action: 'unmaximize' });
  assert.deepEqual(boxOf(back.window as WindowInfo), boxOf(window));
  const minimized = (await act(id, { action: 'minimize' })).window as WindowInfo;
  assert.deepEqual([minimized.visible, minimized.focused], [false, false]);
  assert.deepEqual((await list())[0]?.visible, false);
  const shown = (await act(id, { action: 'focus' })).window as WindowInfo;
  assert.deepEqual([shown.visible, shown.focused], [true, true]);
  const moved = (await act(id, { action: 'move', x: 77, y: 88 })).window as WindowInfo;
  assert.deepEqual(boxOf(moved), { ...boxOf(window), x: 77, y: 88 });
  const off = (await act(id, { action: 'move', x: -50, y: 20 })).window as WindowInfo;
  assert.deepEqual([off.x, off.y], [-50, 20]);
  const resized = (await act(id, { action: 'resize', width: 502, height: 301 })).window;
  // A terminal has whole characters.
  assert.ok(Math.abs((resized?.width ?? 0) - 502) <= 10, String(resized?.width));
  assert.ok(Math.abs((resized?.height ?? 0) - 301) <= 20, String(resized?.height));
  assert.deepEqual(await act(id, { action: 'close' }), { gone: true, window: null });
  assert.deepEqual(await list(), []);
  await assert.rejects(act(id, { action: 'focus' }), { trouble: 'unknown' });
});

test('windows that are not there, and one that does not close', { skip }, async (t) => {
  for (const id of ['0x1', 'nonsense', '0xffffffffff', '0x']) {
    await assert.rejects(act(id, { action: 'close' }), { trouble: 'unknown' });
  }
  const { xterm, window } = await opened(t, 'stopped');
  process.kill(xterm.pid as number, 'SIGSTOP');
  await assert.rejects(act(window.id, { action: 'close' }), { trouble: 'unconfirmed' });
  process.kill(xterm.pid as number, 'SIGCONT');
  await until('it closes after all', async () => (await list()).length === 0);
});

test('a window that goes away meanwhile is told from one that never was', { skip }, async (t) => {
  const bare = await DesktopRig.start({ manager: false });
  t.after(() => bare.end());
  const set = ['-f', '_NET_CLIENT_LIST_STACKING', '32x', '-set', '_NET_CLIENT_LIST_STACKING'];
  await bare.run('xprop', ['-root', ...set, '0x400123']);
  const display = await bare.display.connection(context);
  for (const action of ['minimize', 'raise', 'maximize'] as const) {
    await assert.rejects(actOnWindow(context, display, '0x400123', { action }), {
      trouble: 'gone',
    });
  }
  await assert.rejects(actOnWindow(context, display, '0x400124', { action: 'raise' }), {
    trouble: 'unknown',
  });
  assert.deepEqual(await listWindows(context, display, { all: true }), []);
});

test('panels and the desktop are listed when they are asked for', { skip }, async (t) => {
  const { window } = await opened(t, 'a panel');
  const set = async (type: string) => {
    const atom = `_NET_WM_WINDOW_TYPE_${type}`;
    const args = ['-id', window.id, '-f', '_NET_WM_WINDOW_TYPE', '32a'];
    await rig.run('xprop', [...args, '-set', '_NET_WM_WINDOW_TYPE', atom]);
  };
  for (const type of ['DOCK', 'DESKTOP']) {
    await set(type);
    assert.deepEqual(await list(), []);
    assert.deepEqual(
      (await list(true)).map((listed) => listed.type),
      [type.toLowerCase()],
    );
  }
  await set('DIALOG');
  assert.equal((await list())[0]?.type, 'dialog');
});

test('what a window says of itself is bounded', { skip }, async (t) => {
  const { window } = await opened(t, 'long');
  const name = ['-f', '_NET_WM_NAME', '8u', '-set', '_NET_WM_NAME', 'ä'.repeat(5_000)];
  await rig.run('xprop', ['-id', window.id, ...name]);
  const long = await until('the title is long', async () => {
    const title = (await list())[0]?.title ?? '';
    return title.length > 10 && title;
  });
  assert.ok(Buffer.byteLength(long) <= 512);
  assert.match(long, /^ä+$/);
  const set = ['-f', '_NET_FRAME_EXTENTS', '32c', '-set', '_NET_FRAME_EXTENTS', '4000000000'];
  await rig.run('xprop', ['-id', window.id, ...set]);
  assert.ok(((await list())[0]?.width ?? 0) < 2_000);
});

test('text is cut between characters', () => {
  assert.equal(shortened('aä😀', 7), 'aä😀');
  assert.equal(shortened('aä😀', 6), 'aä');
  assert.equal(shortened('aä😀', 2), 'a');
  assert.equal(shortened('😀', 3), '');
});

test('a window manager that is held up is waited for', { skip }, async (t) => {
  const { window } = await opened(t, 'held up', '-geometry', '60x15+300+200');
  const manager = rig.manager?.pid as number;
  process.kill(manager, 'SIGSTOP');
  setTimeout(() => signal(manager, 'SIGCONT'), 1_000);
  const moved = (await act(window.id, { action: 'move', x: 77, y: 88 })).window;
  assert.deepEqual([moved?.x, moved?.y], [77, 88]);
});
