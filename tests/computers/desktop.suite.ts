// A real desktop seen and driven through the API, and looked at from the other side with its own tools.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';

export function desktop(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  before(async () => {
    ground = theGround();
    id = await ground.desktop({ size: 'medium' });
  });

  const inDesktop = (command: string) => ground.run(id, command, { session: 'desktop' });
  const input = (json: object, query = '') =>
    ground.as.post(`/computers/${id}/input${query}`, json);
  const acted = async (json: object) => {
    const answer = await input(json);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const windows = async () => (await ground.as.get(`/computers/${id}/windows`)).body.windows;
  const shot = async (query = '') => {
    const { key } = ground.service.firstKey();
    const url = `${ground.service.baseUrl}/computers/${id}/screenshot${query}`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
    return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
  };

  test('wire-guest 1: a screenshot is the screen, whole, cut, shrunk and encoded as asked', async () => {
    const whole = await shot('?fresh=1');
    assert.equal(whole.answer.headers.get('content-type'), 'image/png');
    assert.deepEqual(pngSize(whole.bytes), [1280, 800]);
    assert.equal(whole.answer.headers.get('x-gc-capture-size'), '1280x800');
    const capture = whole.answer.headers.get('x-gc-capture') ?? '';
    assert.match(capture, /^[0-9a-f]{16}$/);
    const part = await shot(`?capture=${capture}&region=100,50,300,200`);
    assert.equal(part.answer.headers.get('x-gc-capture'), capture);
    assert.deepEqual(pngSize(part.bytes), [300, 200]);
    assert.deepEqual(pngSize((await shot('?scale=0.25')).bytes), [320, 200]);
    const small = await shot('?w=640');
    assert.equal(small.answer.headers.get('content-type'), 'image/jpeg');
    assert.deepEqual(jpegSize(small.bytes), [640, 400]);
    assert.deepEqual(jpegSize((await shot('?w=1')).bytes), [64, 40]);
    assert.deepEqual(jpegSize((await shot('?format=jpg&quality=5')).bytes), [1280, 800]);
    await inDesktop('maim /tmp/own.png');
    const own = await inDesktop("python3 -c \"print(open('/tmp/own.png', 'rb').read(4))\"");
    assert.match(own, /PNG/);
  });

  test('wire-guest 1: what a screenshot cannot be is 400, an old capture 409', async () => {
    const get = (query: string) => ground.as.get(`/computers/${id}/screenshot${query}`);
    for (const query of [
      '?w=0',
      '?w=x',
      '?quality=50',
      '?format=gif',
      '?w=640&scale=0.5',
      '?scale=0',
      '?scale=1.1',
      '?fresh=yes',
      '?region=1,2,3',
      '?region=1200,700,100,200',
      '?format=png&quality=10&w=100',
      '?capture=0123456789abcdef&fresh=1',
    ]) {
      assertRefused(await get(query), 400);
    }
    const { body } = await get('?region=1200,700,100,200');
    assert.match(body.error, /1280x800/);
    assertRefused(await get('?capture=0123456789abcdef'), 409, 'stale_capture');
  });

  test('wire-guest 2, wire-guest 7: a window is opened, typed into, moved, resized, hidden and closed', async () => {
    await acted({ action: 'left_click', coordinate: [150, 778] });
    const opened = await until('a terminal is there', async () =>
      (await windows()).find((window: { class: string }) => /terminal/i.test(window.class)),
    );
    assert.match(opened.id, /^0x[0-9a-f]+$/);
    await until('it has the focus', async () => (await windows())[0]?.focused);
    // The shell in it must have begun to read.
    await until('what is typed arrives', async () => {
      const typed = await acted({ action: 'type', text: 'echo "Grüße, 世界" > /tmp/typed\n' });
      assert.equal(typed.mechanism, 'mixed');
      return (await ground.exec(id, 'cat /tmp/typed')).out === 'Grüße, 世界\n';
    });
    await acted({ action: 'paste', text: 'touch /tmp/pasted\n', keys: ['ctrl', 'shift', 'v'] });
    await until('what is pasted arrives', async () => {
      if ((await ground.exec(id, 'test -e /tmp/pasted')).code === 0) return true;
      // The terminal asks whether to paste what has a line's end.
      await acted({ action: 'key', key: 'Return' });
      return false;
    });

    const act = async (json: object) => {
      const answer = await ground.as.post(`/computers/${id}/windows/${opened.id}`, json);
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    assert.equal((await act({ action: 'minimize' })).window.visible, false);
    assert.equal((await act({ action: 'focus' })).window.focused, true);
    assert.deepEqual((await act({ action: 'maximize' })).window.x, 0);
    await act({ action: 'unmaximize' });
    const moved = (await act({ action: 'move', x: 40, y: 60 })).window;
    assert.deepEqual([moved.x, moved.y], [40, 60]);
    const resized = (await act({ action: 'resize', width: 500, height: 300 })).window;
    assert.ok(Math.abs(resized.width - 500) < 40 && Math.abs(resized.height - 300) < 40);
    const context = await until('the windows are told in time', async () => {
      return (await input({ action: 'move', x: 5, y: 5 }, '?context=1')).body.context;
    });
    assert.equal(context.focused.id, opened.id);
    assert.deepEqual(await act({ action: 'close' }), { ok: true, gone: true, window: null });
    assertRefused(
      await ground.as.post(`/computers/${id}/windows/${opened.id}`, { action: 'focus' }),
      404,
    );
    const all = (await ground.as.get(`/computers/${id}/windows?include=all`)).body.windows;
    assert.ok(all.some((window: { class: string }) => /tint2/i.test(window.class)));
  });

  test('wire-guest 2: the pointer goes where it is sent; what cannot be presses nothing', async () => {
    await acted({ action: 'mouse_move', coordinate: [321, 123] });
    assert.deepEqual(await acted({ action: 'cursor_position' }), {
      ok: true,
      known: true,
      x: 321,
      y: 123,
    });
    assert.match(await inDesktop('xdotool getmouselocation'), /^x:321 y:123 /);
    for (const json of [
      { action: 'key', key: 'ctrl+nokey' },
      { action: 'move', x: 1280, y: 0 },
      { action: 'type', text: '\u0007' },
      { action: 'wait', duration: 31 },
    ]) {
      assertRefused(await input(json), 400);
    }
    assert.match(await inDesktop('xdotool getmouselocation'), /^x:321 y:123 /);
  });

  test('wire-guest 8: the clipboard is read and filled, from both sides', async () => {
    const at = `/computers/${id}/clipboard`;
    const text = 'Grüße\n世界 🎉';
    assert.equal((await ground.as.put(at, { text })).status, 200);
    assert.equal(await inDesktop('xclip -selection clipboard -out'), text);
    // It goes to the background before the display has heard of it.
    await inDesktop('printf outside | xclip -selection clipboard > /dev/null 2>&1');
    await until('it is read', async () => (await ground.as.get(at)).body.text === 'outside');
    assert.equal((await ground.as.put(at, { text: '' })).status, 200);
    assert.deepEqual((await ground.as.get(at)).body, { text: '' });
    for (const bad of [{ text: 'a'.repeat(65_537) }, { text: 'a\0' }, {}, { text: 7 }]) {
      assertRefused(await ground.as.put(at, bad), 400);
    }
    await inDesktop(
      'head -c 200000 /dev/zero | tr "\\0" x | xclip -selection clipboard > /dev/null 2>&1',
    );
    await until('it is too much', async () => (await ground.as.get(at)).status === 413);
    assertRefused(await ground.as.get(at), 413);
  });

  test('wire-guest 0: without a display it is 409 without a reason, and well again afterwards', async () => {
    await ground.run(id, 'pkill -KILL Xvnc; true');
    const answer = await until('the display is gone or back', () =>
      ground.as.get(`/computers/${id}/windows`),
    );
    if (answer.status !== 200) assertRefused(answer, 409);
    await until('the desktop is back', async () => (await shot('?fresh=1')).answer.status === 200);
  });

  test('wire-guest 0, wire-guest 1: a suspended computer shows its last picture, and input resumes it', async () => {
    await ground.post(`/computers/${id}/suspend`);
    const saved = await shot('?w=3000');
    assert.equal(saved.answer.headers.get('x-gc-frame'), 'suspended');
    assert.equal(saved.answer.headers.get('x-gc-capture'), null);
    assert.deepEqual(jpegSize(saved.bytes), [640, 400]);
    for (const query of ['?fresh=1', '?region=0,0,10,10', '?scale=0.5', '?format=png']) {
      assertRefused(await ground.as.get(`/computers/${id}/screenshot${query}`), 409, 'unavailable');
    }
    assertRefused(await ground.as.get(`/computers/${id}/windows`), 409, 'unavailable');
    assertRefused(await ground.as.get(`/computers/${id}/clipboard`), 409, 'unavailable');
    assert.equal(await ground.status(id), 'suspended', 'looking wakes nothing');
    await acted({ action: 'move', x: 10, y: 10 });
    assert.equal(await ground.status(id), 'running');
    await ground.post(`/computers/${id}/stop?force=true`);
    assertRefused(await ground.as.get(`/computers/${id}/screenshot`), 409, 'unavailable');
  });
}

function pngSize(bytes: Buffer): [number, number] {
  assert.equal(bytes.toString('latin1', 1, 4), 'PNG');
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
}

/** From the frame header, which follows the tables. */
function jpegSize(bytes: Buffer): [number, number] {
  for (let at = 2; at < bytes.length; at += 2 + bytes.readUInt16BE(at + 2)) {
    if (bytes[at + 1] === 0xc0) return [bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5)];
  }
  return assert.fail('no frame header');
}
