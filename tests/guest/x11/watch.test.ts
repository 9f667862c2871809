// What a watcher of the desktop is told.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { Display } from '../../../packages/guest/x11/protocol/display.ts';
import { type DesktopEvent, DesktopEvents } from '../../../packages/guest/desktop/desktop-event.ts';
import { Watch } from '../../../packages/guest/x11/watch/watch.ts';
import { mostDescribed, WindowPicture } from '../../../packages/guest/desktop/window-picture.ts';
import { actOnWindow } from '../../../packages/guest/x11/windows/window-actions.ts';
import type { WindowInfo } from '../../../packages/guest/desktop/window.ts';
import { unhung } from '../../support/until.ts';
import { context, DesktopRig, lacking, stop } from './desktop-rig.ts';

const skip = lacking('xterm', 'xclip');

/** Reads on until one comes that is wanted; answers all up to it. */
async function upTo(
  watch: Watch,
  wanted: (event: DesktopEvent) => boolean,
): Promise<DesktopEvent[]> {
  const all: DesktopEvent[] = [];
  for (;;) {
    const event = await unhung('an event', watch.next(context));
    all.push(event);
    if (wanted(event)) return all;
  }
}

const is =
  (type: DesktopEvent['type'], of?: string) =>
  (event: DesktopEvent): boolean =>
    event.type === type &&
    (of === undefined ||
      ('window' in event && event.window.title === of) ||
      ('id' in event && event.id === of) ||
      ('selection' in event && event.selection === of));

test('windows and selections of a real desktop', { skip }, async (t) => {
  const rig = await DesktopRig.start();
  t.after(() => rig.end());
  const early = rig.launch('xterm', '-T', 'early');
  const watch = new Watch(rig.display);
  t.after(() => watch.close());
  const first = await upTo(watch, is('window.focused', 'early'));
  const [opened] = first.filter(is('window.opened', 'early'));
  assert.ok(opened?.type === 'window.opened');
  assert.equal(opened.window.pid, early.pid);
  const fields = [
    'class',
    'focused',
    'height',
    'id',
    'pid',
    'title',
    'type',
    'visible',
    'width',
    'x',
    'y',
  ];
  assert.deepEqual(Object.keys(opened.window).toSorted(), fields);

  // Another watcher is told of what is open already.
  const late = new Watch(rig.display);
  t.after(() => late.close());
  await upTo(late, is('window.focused', 'early'));

  const second = rig.launch('xterm', '-T', 'second');
  const seen = await upTo(watch, is('window.focused', 'second'));
  assert.equal(seen.filter(is('window.opened', 'second')).length, 1);
  await stop(second);
  await upTo(watch, is('window.closed'));
  await upTo(watch, is('window.focused', 'early'));

  await rig.run('xclip', ['-i', '-selection', 'clipboard'], 'copied');
  await upTo(watch, is('clipboard.changed', 'clipboard'));
  await rig.run('xclip', ['-i', '-selection', 'primary'], 'selected');
  await upTo(watch, is('clipboard.changed', 'primary'));

  const connection = await rig.display.connection(context);
  await actOnWindow(context, connection, opened.window.id, { action: 'minimize' });
  await upTo(watch, is('window.blurred', opened.window.id));

  // The display goes, and its windows with it.
  await stop(rig.server);
  await upTo(watch, is('window.closed', opened.window.id));
});

test('a watcher outlives displays', { skip }, async (t) => {
  const first = await DesktopRig.start();
  t.after(() => first.end());
  const display = new Display({ path: first.path, patienceMs: 30_000 });
  const watch = new Watch(display);
  t.after(() => {
    watch.close();
    display.close();
  });
  first.launch('xterm', '-T', 'before');
  await upTo(watch, is('window.focused', 'before'));
  // Whatever ended it, the same display is connected to again.
  (await display.connection(context)).close();
  const again = await upTo(watch, is('window.focused', 'before'));
  assert.deepEqual(
    again.map(({ type }) => type),
    ['window.closed', 'window.opened', 'window.focused'],
  );
});

test('nobody hears of a desktop that is not there', async () => {
  const display = new Display({ path: '/nowhere/X0', patienceMs: 1_000 });
  const watch = new Watch(display);
  await assert.rejects(watch.next({ signal: AbortSignal.timeout(30) }), { name: 'TimeoutError' });
  watch.close();
});

function info(window: number, type = 'normal'): WindowInfo {
  const box = { x: 0, y: 0, width: 1, height: 1 };
  const id = `0x${window.toString(16)}`;
  return { id, title: '', class: '', type, ...box, focused: false, visible: true };
}

const describeAll = async (windows: readonly number[]) => windows.map((window) => info(window));

test('at most 200 windows are described, and the focused one', async () => {
  const stack = fc.record({
    windows: fc.uniqueArray(fc.integer({ min: 1, max: 500 }), { maxLength: 400 }),
    active: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(stack, { maxLength: 6 }), async (stacks) => {
      const picture = new WindowPicture();
      const described = new Set<string>();
      let focused: string | undefined;
      const hear = (events: readonly DesktopEvent[]) => {
        for (const event of events) {
          if (event.type === 'window.opened') {
            assert.ok(!described.has(event.window.id), 'opened twice');
            described.add(event.window.id);
          } else if (event.type === 'window.closed') {
            assert.ok(described.delete(event.id), 'closed without having been opened');
          } else if (event.type === 'window.focused') {
            assert.ok(described.has(event.window.id), 'focused before it was opened');
            focused = event.window.id;
          } else if (event.type === 'window.blurred') {
            assert.equal(event.id, focused);
            focused = undefined;
          }
          assert.ok(described.size <= mostDescribed + 1);
        }
      };
      for (const { windows, active } of stacks) {
        // The window manager says which is active before it lists it.
        const there = active === undefined ? windows : [...new Set([...windows, active])];
        hear(await picture.update({ windows: there, active }, describeAll));
        const open = new Set(there.map((window) => info(window).id));
        assert.ok([...described].every((id) => open.has(id)));
        assert.ok(described.size >= Math.min(there.length, mostDescribed));
        assert.equal(focused, active === undefined ? undefined : info(active).id);
      }
      hear(picture.clear());
      assert.equal(described.size, 0);
    }),
  );
});

test('panels and the desktop are told of by their focus alone', async () => {
  const picture = new WindowPicture();
  const desktop = async (windows: readonly number[]) =>
    windows.map((window) => info(window, window === 1 ? 'desktop' : 'normal'));
  const types = async (windows: number[], active?: number) =>
    (await picture.update({ windows, active }, desktop)).map(({ type }) => type);
  assert.deepEqual(await types([1, 2], 2), ['window.opened', 'window.focused']);
  assert.deepEqual(await types([1, 2], 1), ['window.focused']);
  assert.deepEqual(await types([1, 2]), ['window.blurred']);
  assert.deepEqual(await types([]), ['window.closed']);
  // One that is gone before it is described is not told of.
  const gone = await picture.update({ windows: [9], active: 9 }, async () => []);
  assert.deepEqual(gone, []);
});

test('a watcher that is too slow is told so, and what waits is bounded', async () => {
  const events = new DesktopEvents(3);
  for (const selection of ['clipboard', 'primary', 'clipboard', 'primary'] as const) {
    assert.ok(events.add({ type: 'clipboard.changed', selection }));
  }
  assert.ok(events.add({ type: 'window.closed', id: '0x1' }));
  assert.ok(!events.add({ type: 'window.closed', id: '0x2' }));
  assert.deepEqual(await events.next(context), { type: 'missed' });
  events.add({ type: 'window.closed', id: '0x3' });
  assert.deepEqual(await events.next(context), { type: 'window.closed', id: '0x3' });
  await assert.rejects(events.next({ signal: AbortSignal.abort(new Error('left')) }), /left/);
});
