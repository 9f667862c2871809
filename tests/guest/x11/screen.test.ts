// What the screen shows, on real displays of every depth.

import assert from 'node:assert/strict';
import test from 'node:test';
import { grab, pointerPosition, screenSize } from '../../../packages/guest/x11/picture/grab.ts';
import type { DisplayError } from '../../../packages/guest/desktop/trouble.ts';
import { until } from '../../support/until.ts';
import { context, DesktopRig, lacking } from './desktop-rig.ts';

const skip = lacking('xsetroot', 'xdotool');

for (const depth of [16, 24, 32]) {
  test(`a screen of depth ${depth}`, { skip }, async (t) => {
    const rig = await DesktopRig.start({ geometry: '1000x700', depth, manager: false });
    t.after(() => rig.end());
    const connection = await rig.display.connection(context);
    assert.deepEqual(await screenSize(context, connection), { width: 1000, height: 700 });
    await rig.run('xsetroot', ['-solid', '#ff8200']);
    const whole = await until('the screen is drawn', async () => {
      const picture = await grab(context, connection);
      return picture.pixels[0] === 255 && picture;
    });
    assert.equal(whole.pixels.length, 1000 * 700 * 3);
    const colours = new Set<string>();
    for (let i = 0; i < whole.pixels.length; i += 3) {
      colours.add(whole.pixels.toString('hex', i, i + 3));
    }
    // One that six bits of green have too.
    assert.deepEqual([...colours], ['ff8200']);

    const part = await grab(context, connection, { x: 990, y: 0, width: 10, height: 700 });
    assert.equal(part.pixels.length, 10 * 700 * 3);
    assert.ok(part.pixels.equals(whole.pixels.subarray(0, part.pixels.length)));
    await assert.rejects(
      grab(context, connection, { x: 991, y: 0, width: 10, height: 1 }),
      (error: DisplayError) => error.trouble === 'invalid' && error.message.includes('1000x700'),
    );

    await rig.run('xdotool', ['mousemove', '123', '456']);
    assert.deepEqual(await pointerPosition(context, connection), { x: 123, y: 456 });
  });
}

test('bands lie where they belong', { skip }, async (t) => {
  const rig = await DesktopRig.start({ manager: false });
  t.after(() => rig.end());
  const connection = await rig.display.connection(context);
  // A pattern of 16 by 16 pixels, so that a row in the wrong place shows.
  await rig.run('xsetroot', ['-mod', '16', '16', '-fg', '#ffffff', '-bg', '#000000']);
  const whole = await until('the pattern is drawn', async () => {
    const picture = await grab(context, connection);
    return picture.pixels.includes(255) && picture;
  });
  const lines = (first: number) =>
    whole.pixels.subarray(first * 1280 * 3, (first + 16) * 1280 * 3).toString('hex');
  assert.equal(new Set(Array.from({ length: 50 }, (_, i) => lines(16 * i))).size, 1);
});

test('a display that is killed is an error, and a new one is found', { skip }, async (t) => {
  const rig = await DesktopRig.start({ manager: false });
  t.after(() => rig.end());
  const connection = await rig.display.connection(context);
  rig.server.kill('SIGKILL');
  await connection.ended;
  await assert.rejects(grab(context, connection), { trouble: 'lost' });
  await assert.rejects(rig.display.connection(context), { trouble: 'lost' });
});
