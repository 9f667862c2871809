import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { actions, inputBody, readGesture } from '../../packages/contract/desktop/input.ts';

const screen = { width: 1280, height: 800 };
const read = (body: unknown) => readGesture(inputBody.parse(body), screen);
const refused = (body: unknown, sentence: RegExp) => assert.throws(() => read(body), sentence);

suite('what is asked of mouse and keyboard', () => {
  test('wire-guest 2: places are given flat or as a pair, and lie on the screen', () => {
    const to = { x: 3, y: 4 };
    for (const action of ['move', 'mouse_move']) {
      assert.deepEqual(read({ action, x: 3, y: 4 }), { do: 'move', to });
      assert.deepEqual(read({ action, coordinate: [3, 4] }), { do: 'move', to });
      refused({ action }, /needs `x` and `y`/);
    }
    refused({ action: 'move', x: 1 }, /go together/);
    for (const coordinate of [
      [-1, 0],
      [1280, 0],
      [0, 800],
    ]) {
      refused({ action: 'move', coordinate }, /not on the screen, which is 1280x800/);
    }
    assert.deepEqual(read({ action: 'move', x: 1279, y: 799 }), {
      do: 'move',
      to: { x: 1279, y: 799 },
    });
  });

  test('wire-guest 2: clicks are counted where they may be, with modifiers', () => {
    const click = { do: 'click', button: 'left', count: 1, at: null, modifiers: '' };
    assert.deepEqual(read({ action: 'left_click' }), click);
    assert.deepEqual(read({ action: 'right_click', count: 10, text: 'ctrl+shift' }), {
      ...click,
      button: 'right',
      count: 10,
      modifiers: 'ctrl+shift',
    });
    assert.deepEqual(read({ action: 'double_click', x: 1, y: 2 }), {
      ...click,
      count: 2,
      at: { x: 1, y: 2 },
    });
    assert.deepEqual(read({ action: 'triple_click' }), { ...click, count: 3 });
    refused({ action: 'double_click', count: 2 }, /`count` goes with/);
    refused({ action: 'left_click', text: 'a' }, /Not a modifier/);
    for (const count of [0, 11, 1.5]) {
      assert.throws(() => inputBody.parse({ action: 'left_click', count }));
    }
  });

  test('wire-guest 2: a drag has an end, a scroll a direction', () => {
    assert.deepEqual(read({ action: 'left_click_drag', coordinate: [9, 9] }), {
      do: 'drag',
      from: null,
      to: { x: 9, y: 9 },
      modifiers: '',
    });
    refused({ action: 'left_click_drag', start_coordinate: [1, 1] }, /needs `coordinate`/);
    const scroll = { do: 'scroll', direction: 'down', amount: 3, at: null, modifiers: '' };
    assert.deepEqual(read({ action: 'scroll', scroll_direction: 'down', x: 0, y: 0 }), scroll);
    assert.deepEqual(read({ action: 'scroll', button: 'down', amount: 0 }), scroll);
    assert.deepEqual(read({ action: 'scroll', scroll_direction: 'down', scroll_amount: 50 }), {
      ...scroll,
      amount: 50,
    });
    assert.deepEqual(read({ action: 'scroll', scroll_direction: 'down', coordinate: [0, 0] }), {
      ...scroll,
      at: { x: 0, y: 0 },
    });
    refused({ action: 'scroll' }, /needs `scroll_direction`/);
    assert.throws(() => inputBody.parse({ action: 'scroll', button: 'up', amount: 51 }));
  });

  test('wire-guest 2: text is typed up to 400 characters, and pasted up to 8192 bytes', () => {
    assert.deepEqual(read({ action: 'type', text: '😀'.repeat(400) }).do, 'type');
    for (const text of ['', '😀'.repeat(401)]) refused({ action: 'type', text }, /1 to 400/);
    for (const text of ['a\rb', 'a\u0007']) refused({ action: 'type', text }, /No key types/);
    assert.equal(read({ action: 'type', text: 'a\tb\r\nc\n' }).do, 'type');
    assert.deepEqual(read({ action: 'paste', text: 'ü'.repeat(4096) }), {
      do: 'paste',
      text: 'ü'.repeat(4096),
      keys: ['ctrl', 'v'],
    });
    for (const text of ['', 'ü'.repeat(4097), 'a\0']) {
      refused({ action: 'paste', text }, /1 to 8192 bytes/);
    }
    refused({ action: 'paste', text: 'a', keys: ['v'] }, /`keys` of a paste/);
    assert.deepEqual(read({ action: 'paste', text: 'a', keys: ['ctrl', 'shift', 'v'] }), {
      do: 'paste',
      text: 'a',
      keys: ['ctrl', 'shift', 'v'],
    });
  });

  test('wire-guest 2: keys are known by name, and held and waited for at most 30 s', () => {
    assert.deepEqual(read({ action: 'key', key: 'ctrl+Page_Down' }), {
      do: 'key',
      keys: ['ctrl+Page_Down'],
    });
    refused({ action: 'key', keys: ['ctrl', 'nokey'] }, /Unknown key: "nokey"/);
    refused({ action: 'key' }, /Name a key/);
    assert.deepEqual(read({ action: 'hold_key', keys: ['a'], duration: 0.25 }), {
      do: 'hold',
      keys: ['a'],
      ms: 250,
    });
    assert.deepEqual(read({ action: 'wait', duration: 30 }), { do: 'wait', ms: 30_000 });
    for (const duration of [undefined, 0, -1, 30.01]) {
      refused({ action: 'wait', duration }, /at most 30 seconds/);
    }
  });

  test('wire-guest 2: an action or a field that is not known is refused', () => {
    assert.throws(() => inputBody.parse({ action: 'dance' }));
    for (const action of actions) assert.throws(() => inputBody.parse({ action, pressure: 1 }));
  });
});
