// Mouse and keyboard, as programs on a real desktop see them.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { Input } from '../../../packages/guest/desktop/input.ts';
import { X11Devices } from '../../../packages/guest/x11/input/devices.ts';
import { pause } from '../../../packages/guest/desktop/waiting.ts';
import { until } from '../../support/until.ts';
import { context, DesktopRig, lacking, stop } from './desktop-rig.ts';

const skip = lacking('xev', 'xterm', 'xclip', 'xdotool', 'xmodmap', 'xset', 'xwininfo');

let rig: DesktopRig;
let input: Input;

before(async () => {
  if (skip !== false) return;
  rig = await DesktopRig.start();
  // A key that is down for long on a slow machine would be seen as many.
  await rig.run('xset', ['r', 'off']);
  input = new Input(new X11Devices(rig.display));
});
after(() => rig?.end());

interface Seen {
  readonly type: string;
  readonly state: number;
  readonly button: number;
  readonly keysym: string;
  readonly x: number;
  readonly y: number;
}

/** A window that tells what happens to it, under the middle of the screen. */
async function observed(t: test.TestContext) {
  const mask = ['-event', 'mouse', '-event', 'keyboard'];
  const xev = rig.launch('xev', '-geometry', '600x400+300+200', ...mask);
  t.after(() => stop(xev));
  let text = '';
  xev.stdout?.setEncoding('utf8').on('data', (more: string) => (text += more));
  const seen = (): Seen[] =>
    text
      .split('\n\n')
      .map((paragraph) => ({
        type: /^\n*(\w+) event/.exec(paragraph)?.[1] ?? '',
        state: Number(/state (0x[0-9a-f]+)/.exec(paragraph)?.[1] ?? 0),
        button: Number(/button (\d+)/.exec(paragraph)?.[1] ?? 0),
        keysym: /keysym 0x[0-9a-f]+, ([^)]+)\)/.exec(paragraph)?.[1] ?? '',
        x: Number(/root:\((-?\d+),/.exec(paragraph)?.[1] ?? 0),
        y: Number(/root:\(-?\d+,(-?\d+)\)/.exec(paragraph)?.[1] ?? 0),
      }))
      .filter(({ type }) => /^(Button|Key|Motion)/.test(type) && type !== 'KeymapNotify');
  await until('xev is there and active', async () => {
    await input.move(context, { x: 600, y: 450 });
    await input.move(context, { x: 601, y: 450 });
    await rig.run('xdotool', ['search', '--name', 'Event Tester', 'windowactivate']);
    // It may be under the pointer a moment before keys go there.
    const focused = Number(await rig.run('xdotool', ['getwindowfocus', '-f']));
    const own = Number(/^Outer window is (0x[0-9a-f]+)/m.exec(text)?.[1]);
    return seen().length > 0 && focused === own;
  });
  return {
    /** What is seen of `work`, once `enough` of it is. */
    async during(work: () => Promise<unknown>, enough: (all: Seen[]) => boolean) {
      const earlier = seen().length;
      await work();
      return until('xev has seen it', () => {
        const all = seen().slice(earlier);
        return enough(all) && all;
      });
    },
    seen,
  };
}

const counts = (type: string, count: number) => (all: Seen[]) =>
  all.filter((event) => event.type === type).length === count;

const summary = (all: Seen[]) =>
  all
    .filter(({ type }) => type !== 'MotionNotify')
    .map(({ type, button, keysym, state }) => `${type} ${button || keysym} ${state}`);

test('the pointer goes where it is sent and stays on the screen', { skip }, async () => {
  await input.move(context, { x: 321, y: 123 });
  assert.match(await rig.run('xdotool', ['getmouselocation']), /x:321 y:123 /);
  await input.move(context, { x: 32_000, y: -5 });
  assert.match(await rig.run('xdotool', ['getmouselocation']), /x:1279 y:0 /);
  await assert.rejects(input.move(context, { x: 32_768, y: 0 }), { trouble: 'invalid' });
  await assert.rejects(input.move(context, { x: 0.5, y: 0 }), { trouble: 'invalid' });
});

test('clicks, wheel and drags arrive, with their modifiers', { skip }, async (t) => {
  const xev = await observed(t);
  const at = { x: 610, y: 420 };
  const double = await xev.during(
    () => input.click(context, { at, button: 'left', count: 2, modifiers: 'shift' }),
    counts('KeyRelease', 1),
  );
  assert.deepEqual(summary(double), [
    'KeyPress Shift_L 0',
    'ButtonPress 1 1',
    'ButtonRelease 1 257',
    'ButtonPress 1 1',
    'ButtonRelease 1 257',
    'KeyRelease Shift_L 1',
  ]);
  assert.ok(
    double.filter(({ button }) => button === 1).every(({ x, y }) => x === 610 && y === 420),
  );

  for (const [button, number] of [
    ['middle', 2],
    ['right', 3],
  ] as const) {
    const once = await xev.during(
      () => input.click(context, { button, count: 1 }),
      counts('ButtonRelease', 1),
    );
    assert.ok(once.some((event) => event.button === number));
  }
  for (const [direction, number] of [
    ['up', 4],
    ['down', 5],
    ['left', 6],
    ['right', 7],
  ] as const) {
    const notches = await xev.during(
      () => input.scroll(context, { direction, amount: 3, modifiers: 'ctrl' }),
      counts('ButtonRelease', 3),
    );
    const presses = notches.filter(({ type }) => type === 'ButtonPress');
    assert.deepEqual(
      presses.map(({ button, state }) => [button, state]),
      Array.from({ length: 3 }, () => [number, 4]),
    );
  }
  const dragged = await xev.during(
    () => input.drag(context, { from: { x: 500, y: 400 }, to: { x: 700, y: 450 } }),
    counts('ButtonRelease', 1),
  );
  const held = dragged.filter(({ type, state }) => type === 'MotionNotify' && state === 256);
  assert.ok(held.length >= 4);
  const released = dragged.at(-1);
  assert.deepEqual([released?.type, released?.x, released?.y], ['ButtonRelease', 700, 450]);

  await xev.during(() => input.buttonDown(context, { button: 'left' }), counts('ButtonPress', 1));
  await xev.during(() => input.buttonUp(context, { button: 'left' }), counts('ButtonRelease', 1));
  await assert.rejects(input.click(context, { button: 'left', count: 11 }), { trouble: 'invalid' });
  await assert.rejects(input.click(context, { button: 'left', count: 1, modifiers: 'a' }), {
    trouble: 'invalid',
  });
});

test('keys by name, in chords, and those that no keyboard has', { skip }, async (t) => {
  const xev = await observed(t);
  const pressed = async (keys: readonly string[], releases: number) =>
    summary(await xev.during(() => input.press(context, keys), counts('KeyRelease', releases)));
  assert.deepEqual(await pressed(['ctrl+shift+Page_Down'], 3), [
    'KeyPress Control_L 0',
    'KeyPress Shift_L 4',
    'KeyPress Next 5',
    'KeyRelease Next 5',
    'KeyRelease Shift_L 5',
    'KeyRelease Control_L 4',
  ]);
  assert.deepEqual(await pressed(['plus'], 2), [
    'KeyPress Shift_L 0',
    'KeyPress plus 1',
    'KeyRelease plus 1',
    'KeyRelease Shift_L 1',
  ]);
  assert.deepEqual(await pressed(['F22'], 1), ['KeyPress F22 0', 'KeyRelease F22 0']);
  assert.deepEqual(await pressed(['ctrl', 'A'], 2), [
    'KeyPress Control_L 0',
    'KeyPress a 4',
    'KeyRelease a 4',
    'KeyRelease Control_L 4',
  ]);
  const earlier = xev.seen().length;
  await assert.rejects(input.press(context, ['ctrl+nokey']), /unknown key: "nokey"/);
  await rig.run('xset', ['q']);
  assert.equal(xev.seen().length, earlier);
});

test('a call that is left half way leaves nothing down', { skip }, async (t) => {
  const xev = await observed(t);
  const leaving = new AbortController();
  const holding = xev.during(
    () => assert.rejects(input.hold(leaving, ['ctrl', 'q'], 600_000), /left/),
    counts('KeyRelease', 2),
  );
  await until('the keys are down', () => counts('KeyPress', 2)(xev.seen()));
  leaving.abort(new Error('left'));
  await holding;

  const dragging = new AbortController();
  const asked = { from: { x: 500, y: 400 }, to: { x: 850, y: 550 }, modifiers: 'shift' };
  const dropped = xev.during(
    // On a slow machine it may have come to its end by itself.
    () => input.drag(dragging, asked).catch(() => {}),
    (all) => counts('ButtonRelease', 1)(all) && counts('KeyRelease', 1)(all),
  );
  await until('the button is down', () => xev.seen().some(({ button }) => button === 1));
  dragging.abort();
  await dropped;
});

test('what was down on a display that was lost comes up on the next', { skip }, async (t) => {
  const xev = await observed(t);
  const leaving = new AbortController();
  const holding = assert.rejects(input.hold(leaving, ['q'], 600_000), /left/);
  await until('the key is down', () => counts('KeyPress', 1)(xev.seen()));
  (await rig.display.connection(context)).close();
  leaving.abort(new Error('left'));
  await holding;
  await xev.during(
    () => input.move(context, { x: 600, y: 440 }),
    (all) => all.some(({ type, keysym }) => type === 'KeyRelease' && keysym === 'q'),
  );
});

/** What a terminal's program reads while `work` is done, which is told the terminal's process. */
async function typed(
  t: test.TestContext,
  work: (terminal: number) => Promise<unknown>,
  enough: RegExp,
) {
  const file = join(rig.folder, 'typed');
  rmSync(file, { force: true });
  const xterm = rig.launch('xterm', '-u8', '-geometry', '60x10+300+300', '-e', `cat > ${file}`);
  t.after(() => stop(xterm));
  const pid = String(xterm.pid);
  await until('the terminal has the keyboard', async () => {
    // What the window manager calls active may be so a moment before keys go there.
    const focused = await rig.run('xdotool', ['getwindowfocus', 'getwindowpid']);
    if (focused.trim() !== pid)
      await rig.run('xdotool', ['search', '--pid', pid, 'windowactivate']);
    // What is typed before its program has begun may be lost on the terminal's way up.
    return focused.trim() === pid && existsSync(file);
  });
  await work(Number(pid));
  return until('the text is there', () => {
    const text = readFileSync(file, 'utf8');
    return enough.test(text) && text;
  });
}

test('a program takes several presses for one multiple click', { skip }, async (t) => {
  const shown = join(rig.folder, 'shown');
  const script = `printf 'alpha beta gamma'; touch ${shown}; sleep 600`;
  const xterm = rig.launch('xterm', '-geometry', '40x5+300+300', '-e', script);
  t.after(() => stop(xterm));
  const measured = await until('the terminal shows its text', async () => {
    const found = await rig.run('xdotool', ['search', '--pid', String(xterm.pid)]);
    const window = found.trim().split('\n').at(-1) ?? '';
    if (window === '') return false;
    const text = await rig.run('xwininfo', ['-id', window]);
    return existsSync(shown) && text.includes('IsViewable') && text;
  });
  const place = (side: string) =>
    Number(new RegExp(`Absolute upper-left ${side}: +(\\d+)`).exec(measured)?.[1]);
  // In the first word: beyond the inner border of 2 pixels, in a font of some ten.
  const at = { x: place('X') + 10, y: place('Y') + 8 };
  for (const [count, selected] of [
    [2, 'alpha'],
    [3, 'alpha beta gamma'],
  ] as const) {
    await until(`${count} presses select`, async () => {
      await input.click(context, { at, button: 'left', count });
      const primary = await rig.run('xclip', ['-o', '-selection', 'primary']);
      // The next ones are not to be taken for more of these.
      await pause(context, 600);
      return primary.trim() === selected;
    });
  }
});

const printable = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

test('every character of ASCII is typed, tabs and lines too', { skip }, async (t) => {
  const text = `${printable}\ta\r\nb\nend\n`;
  const read = await typed(
    t,
    async () => assert.equal(await input.type(context, text), 'physical'),
    /end\n$/,
  );
  assert.equal(read, text.replace('\r\n', '\n'));
});

test('capitals stay capitals while Caps Lock is on', { skip }, async (t) => {
  await input.press(context, ['Caps_Lock']);
  t.after(() => input.press(context, ['Caps_Lock']));
  assert.equal(await typed(t, () => input.type(context, 'aB1! end\n'), /end\n$/), 'aB1! end\n');
});

test(
  'more foreign characters than there are free keys, to a program that is late',
  { skip },
  async (t) => {
    const greek = Array.from({ length: 24 }, (_, i) => String.fromCodePoint(0x3b1 + i)).join('');
    const text = `äöüßé ±½ €日本語😀 ${greek} Привет äöü end\n`;
    let mechanism = '';
    const read = await typed(
      t,
      async (terminal) => {
        process.kill(terminal, 'SIGSTOP');
        const typing = input.type(context, text);
        // Behind its events by as much as a busy program is.
        await pause(context, 500);
        process.kill(terminal, 'SIGCONT');
        mechanism = await typing;
      },
      /end\n$/,
    );
    assert.equal(read, text);
    assert.equal(mechanism, 'mixed');

    // An agent that starts later finds the keys that this one has used.
    const later = new Input(new X11Devices(rig.display));
    const other = await typed(t, () => later.type(context, 'čšž ďťň ąęść end\n'), /end\n$/);
    assert.equal(other, 'čšž ďťň ąęść end\n');
    // The keyboard's own keys are as they were.
    assert.match(await rig.run('xmodmap', ['-pke']), /keycode {2}24 = q Q q Q/);
  },
);

test('text that cannot be typed is refused before a key is pressed', { skip }, async (t) => {
  const xev = await observed(t);
  const refusedAndPressed = async () => {
    await assert.rejects(input.type(context, 'abc\u0007'), { trouble: 'invalid' });
    await input.press(context, ['z']);
  };
  const all = await xev.during(refusedAndPressed, counts('KeyRelease', 1));
  assert.deepEqual(summary(all), ['KeyPress z 0', 'KeyRelease z 0']);
});
