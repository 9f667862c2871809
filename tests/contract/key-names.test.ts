// Names of keys, chords, and text as keys.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { parseChord, parseModifiers } from '../../packages/contract/desktop/key-names.ts';
import { keysymOf } from '../../packages/contract/desktop/keysyms.ts';
import { keysOfText } from '../../packages/contract/desktop/typed-text.ts';
import { InvalidInput } from '../../packages/contract/desktop/invalid-input.ts';

test('names as people and X11 have them', () => {
  const same: [string, number][] = [
    ['enter', 0xff0d],
    ['Return', 0xff0d],
    ['ENTER', 0xff0d],
    ['esc', 0xff1b],
    ['pageup', 0xff55],
    ['Page_Down', 0xff56],
    ['Next', 0xff56],
    ['BackSpace', 0xff08],
    ['period', 0x2e],
    ['plus', 0x2b],
    ['ArrowLeft', 0xff51],
    ['f5', 0xffc2],
    ['F24', 0xffd5],
    ['Delete', 0xffff],
    ['KP_Enter', 0xff8d],
    ['XF86AudioPlay', 0x1008ff14],
    ['ydiaeresis', 0xff],
    ['a', 0x61],
    ['A', 0x41],
    ['7', 0x37],
    ['é', 0xe9],
    ['€', 0x10020ac],
    ['U20AC', 0x10020ac],
    ['cmd', 0xffeb],
    ['meta', 0xffeb],
  ];
  for (const [name, symbol] of same) assert.deepEqual(parseChord([name]), [symbol], name);
});

test('chords', () => {
  const [control, shift] = [0xffe3, 0xffe1];
  assert.deepEqual(parseChord(['ctrl+shift+t']), [control, shift, 0x74]);
  assert.deepEqual(parseChord(['ctrl', 'shift', 'v']), [control, shift, 0x76]);
  // The key of C, and the modifiers first.
  assert.deepEqual(parseChord(['C+ctrl']), [control, 0x63]);
  assert.deepEqual(parseChord(['+']), [0x2b]);
  assert.deepEqual(parseChord(['ctrl++']), [control, 0x2b]);
  assert.deepEqual(parseChord(['ctrl+plus']), [control, 0x2b]);
  assert.deepEqual(parseModifiers('ctrl+alt'), [control, 0xffe9]);
  assert.deepEqual(parseModifiers(''), []);
});

test('what is no key is refused by name', () => {
  for (const keys of [['ctrl+nokey'], ['nokey', 'a']]) {
    assert.throws(() => parseChord(keys), { trouble: 'invalid', message: 'unknown key: "nokey"' });
  }
  assert.throws(() => parseChord([]), { trouble: 'invalid' });
  assert.throws(() => parseModifiers('ctrl+a'), {
    trouble: 'invalid',
    message: 'not a modifier: "a"',
  });
  assert.throws(
    () => parseChord(['x'.repeat(1_000)]),
    (error: Error) => error.message.length < 100,
  );
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' })), (keys) => {
      try {
        parseChord(keys);
      } catch (error) {
        assert.ok(error instanceof InvalidInput);
      }
    }),
  );
});

test('text as keys', () => {
  assert.deepEqual(keysOfText('a\tB\r\n!'), {
    symbols: [0x61, 0xff09, 0x42, 0xff0d, 0x21],
    mechanism: 'physical',
  });
  assert.equal(keysOfText('äö').mechanism, 'unicode');
  assert.equal(keysOfText('aö').mechanism, 'mixed');
  assert.deepEqual(keysOfText('😀').symbols, [0x101f600]);
  for (const refused of ['a\rb', '\u0000', '\u001b', '\u007f', '\u0085', '\ud800']) {
    assert.throws(() => keysOfText(refused), { trouble: 'invalid' }, JSON.stringify(refused));
  }
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
      fc.pre(!/[\p{Cc}\p{Cs}]/u.test(text));
      const wanted = Array.from(text, (character) => keysymOf(character.codePointAt(0) as number));
      assert.deepEqual(keysOfText(text).symbols, wanted);
    }),
  );
});
