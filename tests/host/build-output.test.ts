import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Tail } from '../../packages/host/builds/masked.ts';

/** In bytes. */
const longestError = 4_096;

function told(output: string | Buffer, ...secrets: string[]): string {
  const tail = new Tail();
  const bytes = Buffer.from(output);
  for (let at = 0; at < bytes.length; at += 1_000) tail.add(bytes.subarray(at, at + 1_000));
  return tail.told(secrets);
}

suite('what is told of a failed step’s output', () => {
  test('is all of it when it is short, and its end otherwise', () => {
    assert.equal(told(''), '');
    assert.equal(told('a\nb\n'), 'a\nb');
    const long = told(`${'x'.repeat(20_000)}the end\n`);
    assert.ok(long.endsWith('xthe end'));
    assert.equal(long.length, longestError - 1);
  });

  test('is text, whatever the guest wrote and wherever it is cut', () => {
    for (let before = 0; before < 4; before += 1) {
      const text = told(`${'x'.repeat(before)}${'€'.repeat(5_000)}`);
      assert.match(text, /^€+$/);
    }
    assert.ok(told(Buffer.from([0xff, 0x61, 0xc3])).isWellFormed());
    for (const [output, secret] of [
      [Buffer.alloc(20_000, 'a€'), 'a'],
      [Buffer.alloc(20_000, 0xff), ''],
    ] as const) {
      assert.ok(Buffer.byteLength(told(output, secret)) <= longestError);
    }
  });

  test('does not speak to the terminal that shows it', () => {
    const output = '\u001b[1;31mred\u001b[0m\t10 %\r20 %\r\ndone\u0007\u001b]0;title\u009c';
    assert.equal(told(output), 'red\t10 %\n20 %\ndone]0;title');
  });

  test('has no secret in it, whole, by its lines or cut in two', () => {
    const secret = 'p4ss w0rd/ü';
    assert.equal(told(`${secret} and ${secret}`, secret), '*** and ***');
    assert.equal(told('abcabcab', 'abcab'), '***');
    assert.equal(told('one: second line\n', 'first line\nsecond line\n'), 'one: ***');
    assert.equal(told('a ab abc', 'a', 'ab', 'abc'), '*** *** ***');
    const long = `${'s'.repeat(4_000)}ecret`;
    for (const shown of [3, 2_000, 4_000]) {
      const text = told(`${'x'.repeat(9_000)}${long}${'y'.repeat(longestError - shown)}`, long);
      assert.equal(text, `***${'y'.repeat(longestError - shown)}`);
    }
    assert.equal(told('nothing', ''), 'nothing');
  });
});
