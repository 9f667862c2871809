// A tiling Wayland desktop, seen and driven through the API, and looked at from the other side with its own
// tools.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { assertRefused } from '../support/assertions.ts';
import { greet, messages } from '../support/rfb.ts';
import { TestSocket } from '../support/socket.ts';
import { until } from '../support/until.ts';
import { ComputerGround } from './ground.ts';
import { ClientSocket } from './socket.ts';

const ability = await canRunEngine();
if (!ability.can) test('a tiling desktop', { skip: ability.reason });
else describe('a tiling desktop', { timeout: 600_000 }, tiling);

interface Window {
  readonly id: string;
  readonly class: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly focused: boolean;
  readonly visible: boolean;
}

function tiling(): void {
  let ground: ComputerGround;
  let id: string;
  before(async () => {
    ground = await ComputerGround.open({ CUBICLE_POOL: '1' });
    await until('a base computer waits', async () => (await ground.report()).host.waiting === 1);
    id = (await made()).id;
    await ground.desktopReady(id);
  });
  after(() => ground?.close());

  const wish = { template: 'tiling', cpu: 2, ram_mb: 2_048 };
  /** The image is in the cache, but the service finds it there in its own time. */
  const made = () =>
    until('the image is there', async () => {
      const answer = await ground.as.post('/computers', wish);
      if (answer.status === 409) {
        assert.equal(answer.body.code, 'template_image_preparing');
        assert.equal(answer.body.preparation.state, 'preparing');
        return undefined;
      }
      assert.equal(answer.status, 201, answer.text);
      return answer.body as { id: string; desktop: string };
    });
  const desktop = { session: 'desktop' } as const;
  const inDesktop = (command: string) => ground.run(id, command, desktop);
  const acted = async (json: object) => {
    const answer = await ground.as.post(`/computers/${id}/input`, json);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const windows = async (): Promise<Window[]> =>
    (await ground.as.get(`/computers/${id}/windows`)).body.windows;
  const act = (window: string, json: object) =>
    ground.as.post(`/computers/${id}/windows/${window}`, json);
  const done = async (window: string, json: object) => {
    const answer = await act(window, json);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  /** Opened by a program; answers when it has the focus. */
  const opened = async (command: string, name: RegExp) => {
    const known = new Set((await windows()).map((window) => window.id));
    await inDesktop(`swaymsg exec ${command}`);
    return until('its window has the focus', async () =>
      (await windows()).find(
        (window) => !known.has(window.id) && name.test(window.class) && window.focused,
      ),
    );
  };
  const closeAll = async () => {
    for (const window of await windows()) await done(window.id, { action: 'close' });
  };
  /** A shell may not have begun to read when its window is there, so what is typed is typed again. */
  const typed = async (text: string, file: string) => {
    await until('what is typed arrives', async () => {
      await acted({ action: 'type', text: `echo '${text}' > ${file}\n` });
      return (await ground.exec(id, `cat ${file}`)).out.trim() === text;
    });
  };

  test('Part 2 Template, wire-computers 2: its record says wayland, and the pool has none of them', async () => {
    const { body } = await ground.as.get(`/computers/${id}`);
    assert.deepEqual([body.template, body.desktop], ['tiling', 'wayland']);
    assert.equal((await ground.report()).host.waiting, 1, 'the base computer still waits');
    const plain = await ground.create();
    assert.equal((await ground.as.get(`/computers/${plain.id}`)).body.desktop, undefined);
    assert.equal((await ground.as.send('DELETE', `/computers/${plain.id}`)).status, 200);
    assert.match(await inDesktop('echo $XDG_SESSION_TYPE; pgrep sway'), /^wayland\n\d+/);
  });

  test('wire-guest 1: a screenshot is the screen', async () => {
    const { key } = ground.service.firstKey();
    const shot = async (query: string) => {
      const url = `${ground.service.baseUrl}/computers/${id}/screenshot${query}`;
      const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(answer.headers.get('x-gc-capture-size'), '1280x800');
      return Buffer.from(await answer.arrayBuffer());
    };
    const whole = await shot('?fresh=1');
    assert.deepEqual([whole.readUInt32BE(16), whole.readUInt32BE(20)], [1280, 800]);
    assert.ok(whole.length > 20_000, 'a wallpaper takes more than one colour does');
    const part = await shot('?region=0,756,200,44&format=png');
    assert.deepEqual([part.readUInt32BE(16), part.readUInt32BE(20)], [200, 44]);
  });

  test('wire-guest 2: a click on the bar opens a terminal, and what is typed lands there', async () => {
    await acted({ action: 'left_click', coordinate: [152, 778] });
    await until('a terminal has the focus', async () =>
      (await windows()).some((window) => window.class === 'foot' && window.focused),
    );
    await typed('plain ~!@#$%^&*()_+{}|:"<>? ASCII', '/tmp/plain');
    // More characters than there are spare keys, one of them beyond the first plane.
    await typed('Grüße 世界 🎉 Ελλάδα €½ñœ łódź', '/tmp/letters');
    const { mechanism } = await acted({ action: 'type', text: 'é' });
    assert.equal(mechanism, 'unicode');
    await acted({ action: 'key', keys: ['ctrl+c'] });
    await typed('after', '/tmp/after');
  });

  test('wire-guest 2: the pointer clicks, drags, scrolls and holds, and is where it was put', async () => {
    await acted({ action: 'mouse_move', coordinate: [321, 123] });
    const place = { ok: true, known: true, x: 321, y: 123 };
    assert.deepEqual(await acted({ action: 'cursor_position' }), place);
    await closeAll();
    await opened('foot cat', /foot/);
    await inDesktop('printf "" | wl-copy --primary');
    await acted({ action: 'type', text: 'some words to select\n' });
    await until('a drag selects', async () => {
      await acted({ action: 'left_click_drag', start_coordinate: [22, 29], coordinate: [400, 29] });
      return /words to/.test((await ground.exec(id, 'wl-paste --primary', desktop)).out);
    });
    for (const action of ['double_click', 'triple_click', 'right_click', 'middle_click']) {
      await acted({ action, coordinate: [60, 29] });
    }
    await acted({
      action: 'scroll',
      coordinate: [60, 29],
      scroll_direction: 'up',
      scroll_amount: 3,
    });
    await acted({ action: 'hold_key', keys: ['a'], duration: 0.1 });
  });

  test('wire-guest 7, Part 2 Template: tiled windows are the compositor’s to place, floating ones are moved', async () => {
    await closeAll();
    const first = await opened('foot', /foot/);
    const alone = first.width;
    const second = await opened('mousepad', /mousepad/i);
    const [left, right] = await until('they share the screen', async () => {
      const both = await windows();
      return both.length === 2 && both.every(({ width }) => width < alone) ? both : undefined;
    });
    assert.ok(left !== undefined && right !== undefined && left.x < right.x);
    assert.match(first.id, /^0x[0-9a-f]+$/);
    assertRefused(await act(first.id, { action: 'move', x: 10, y: 10 }), 400);
    const refused = await act(second.id, { action: 'resize', width: 300, height: 200 });
    assert.match(refused.body.error, /tiled/);
    assert.equal((await done(first.id, { action: 'focus' })).window.focused, true);
    assert.equal((await windows()).find(({ focused }) => focused)?.id, first.id);

    const hidden = (await done(second.id, { action: 'minimize' })).window;
    assert.equal(hidden.visible, false);
    const back = (await done(second.id, { action: 'focus' })).window;
    assert.deepEqual([back.visible, back.focused], [true, true]);
    assertRefused(await act(second.id, { action: 'move', x: 10, y: 10 }), 400);
    const full = (await done(second.id, { action: 'maximize' })).window;
    assert.deepEqual([full.width, full.height], [1280, 800]);
    assert.ok((await done(second.id, { action: 'unmaximize' })).window.width < 1280);

    await acted({ action: 'key', keys: ['super+shift+space'] });
    const moved = (await done(second.id, { action: 'move', x: 40, y: 60 })).window;
    assert.deepEqual([moved.x, moved.y], [40, 60]);
    const resized = (await done(second.id, { action: 'resize', width: 500, height: 300 })).window;
    assert.deepEqual([resized.x, resized.y], [40, 60]);
    assert.ok(Math.abs(resized.width - 500) < 40 && Math.abs(resized.height - 300) < 60);

    const closed = await done(second.id, { action: 'close' });
    assert.deepEqual(closed, { ok: true, gone: true, window: null });
    assertRefused(await act(second.id, { action: 'focus' }), 404);
  });

  test('wire-guest 8: the clipboard is read and filled, from both sides', async () => {
    const at = `/computers/${id}/clipboard`;
    const text = 'Grüße\n世界 🎉';
    assert.equal((await ground.as.put(at, { text })).status, 200);
    assert.equal(await inDesktop('wl-paste --no-newline'), text);
    // It goes to the background before the compositor has heard of it.
    await inDesktop('printf outside | wl-copy');
    await until('it is read', async () => (await ground.as.get(at)).body.text === 'outside');
    assert.equal((await ground.as.put(at, { text: '' })).status, 200);
    assert.deepEqual((await ground.as.get(at)).body, { text: '' });
    await inDesktop('head -c 200000 /dev/zero | tr "\\0" x | wl-copy');
    await until('it is too much', async () => (await ground.as.get(at)).status === 413);
    assertRefused(await ground.as.get(at), 413);
  });

  test('Part 6.2: windows and the clipboard are told as they change', async () => {
    const { events_url: url } = (await ground.as.get(`/computers/${id}`)).body;
    const socket = await ClientSocket.open(url);
    try {
      const hello = await socket.frame('hello', ({ type }) => type === 'hello');
      assert.equal(hello.ready, true);
      const window = await opened('foot', /foot/);
      const about = (type: string) => (frame: { type: string; data?: object }) =>
        frame.type === type && JSON.stringify(frame.data).includes(`"${window.id}"`);
      await socket.frame('it opened', about('window.opened'));
      await socket.frame('it has the focus', about('window.focused'));
      await inDesktop('printf news | wl-copy');
      await socket.frame('the clipboard', ({ type }) => type === 'clipboard.changed');
      await done(window.id, { action: 'close' });
      await socket.frame('it closed', about('window.closed'));
    } finally {
      await socket.close();
    }
  });

  test('wire-guest 10: the live screen shows it, and moves its pointer', async () => {
    await closeAll();
    const { url } = (await ground.as.get(`/computers/${id}`)).body.vnc;
    const socket = await TestSocket.open(url);
    const { width, height } = await greet(socket);
    assert.deepEqual([width, height], [1280, 800]);
    socket.raw.send(messages.pixelFormat());
    socket.raw.send(messages.encodings(0));
    socket.raw.send(messages.updateRequest(false, width, height));
    assert.equal((await socket.take(4)).readUInt8(0), 0, 'a picture');
    const moved = { action: 'cursor_position' };
    assert.equal((await acted(moved)).known, false, 'a viewer may move it');
    // The terminal's button in the bar.
    for (const buttons of [0, 1, 0]) socket.raw.send(messages.pointer(buttons, 152, 778));
    await until('a terminal is there', async () =>
      (await windows()).some((window) => window.class === 'foot'),
    );
    socket.raw.close();
  });

  test('wire-guest 0: a session that broke is well again, and so is one that was suspended', async () => {
    await ground.run(id, 'pkill -KILL -x sway; true');
    await until('the desktop is back', async () => {
      const answer = await ground.as.get(`/computers/${id}/windows`);
      if (answer.status !== 200) assertRefused(answer, 409);
      return answer.status === 200 && (await ground.told(id))?.ready;
    });
    await opened('foot', /foot/);
    await typed('again', '/tmp/again');
    await ground.post(`/computers/${id}/suspend`);
    await acted({ action: 'move', x: 10, y: 10 });
    assert.equal(await ground.status(id), 'running');
    await typed('resumed', '/home/user/kept');
  });

  test('wire-computers 5: a copy is a tiling desktop too', async () => {
    await ground.post(`/computers/${id}/stop?force=true`);
    const copy = (await ground.as.post(`/computers/${id}/clone`, {})).body;
    assert.equal(copy.desktop, 'wayland');
    await ground.ended(copy.operation_id);
    await ground.post(`/computers/${copy.id}/start`);
    await ground.desktopReady(copy.id);
    const seen = await ground.run(copy.id, 'cat /home/user/kept; pgrep -x sway', desktop);
    assert.match(seen, /^resumed\n\d+/);
  });
}
