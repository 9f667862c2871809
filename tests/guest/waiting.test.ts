import assert from 'node:assert/strict';
import { test } from 'node:test';
import { always, becomes } from '../../packages/guest/desktop/waiting.ts';

test('the time that a machine stood still is nobody’s delay', async () => {
  let looks = 0;
  const standing = async () => {
    if (looks === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    looks += 1;
    return looks === 2;
  };
  assert.equal(await becomes(always, 50, standing), true);
  assert.equal(await becomes(always, 50, async () => false), false);
});
