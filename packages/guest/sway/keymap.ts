// The keyboard that the agent gives itself: an American one, and beside it keys without a symbol that take
// whatever else is typed.

import { keysyms } from '@cubicle/contract/desktop/keysyms.ts';

export interface Key {
  /** As Linux counts keys; in a map it is eight more. */
  readonly code: number;
  readonly shifted: boolean;
}

const rows: readonly [first: number, plain: string, shifted: string][] = [
  [2, '1234567890-=', '!@#$%^&*()_+'],
  [16, 'qwertyuiop[]', 'QWERTYUIOP{}'],
  [30, "asdfghjkl;'`", 'ASDFGHJKL:"~'],
  [43, '\\zxcvbnm,./', '|ZXCVBNM<>?'],
  [57, ' ', ''],
];

const named: readonly [first: number, names: string][] = [
  [1, 'Escape'],
  [14, 'BackSpace Tab'],
  [28, 'Return Control_L'],
  [42, 'Shift_L'],
  [54, 'Shift_R'],
  [56, 'Alt_L'],
  [58, 'Caps_Lock F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 Num_Lock Scroll_Lock'],
  [87, 'F11 F12'],
  [96, 'KP_Enter Control_R'],
  [99, 'Print Alt_R'],
  [102, 'Home Up Page_Up Left Right End Down Page_Down Insert Delete'],
  [119, 'Pause'],
  [125, 'Super_L Super_R Menu'],
];

const symbol = (name: string): number => keysyms.get(name) as number;

const keys = new Map<number, Key>([
  ...rows.flatMap(([first, plain, shifted]) => [
    ...onKeys(first, Array.from(plain, codeOf), false),
    ...onKeys(first, Array.from(shifted, codeOf), true),
  ]),
  ...named.flatMap(([first, names]) => onKeys(first, names.split(' ').map(symbol), false)),
]);

function onKeys(first: number, symbols: readonly number[], shifted: boolean): [number, Key][] {
  return symbols.map((each, i) => [each, { code: first + i, shifted }]);
}

function codeOf(character: string): number {
  return character.charCodeAt(0);
}

export const shiftLeft = symbol('Shift_L');

/** What a key holds down for the others, as bits of the map's modifiers. */
export const modifierBits: ReadonlyMap<number, number> = new Map([
  ...bitOf(1, 'Shift_L Shift_R'),
  ...bitOf(4, 'Control_L Control_R'),
  ...bitOf(8, 'Alt_L Alt_R Meta_L Meta_R'),
  ...bitOf(64, 'Super_L Super_R Hyper_L Hyper_R'),
  ...bitOf(128, 'ISO_Level3_Shift'),
]);

function bitOf(bit: number, names: string): [number, number][] {
  return names.split(' ').map((name) => [symbol(name), bit]);
}

/** What a key switches on and off. */
export const lockBits: ReadonlyMap<number, number> = new Map([
  [symbol('Caps_Lock'), 2],
  [symbol('Num_Lock'), 16],
]);
export const capsLock = 2;

/**
 * Codes of keys that few keyboards have, and that Chromium knows by name: whatever is on a key that it does
 * not know it drops, and its own name for 226 outweighs what is on it.
 */
const spareCodes = [224, 225, 227, 228, 229, 230, 231, 232, 233, 234, 235, 244];

export class Keymap {
  /** Symbols on spare keys, the longest unused first. */
  #spare = new Map<number, number>();

  find(keysym: number): Key | undefined {
    const code = this.#spare.get(keysym);
    return keys.get(keysym) ?? (code === undefined ? undefined : { code, shifted: false });
  }

  /** How many of these, from the first on, can be on keys at once. */
  fitting(symbols: readonly number[]): number {
    const wanted = new Set<number>();
    const end = symbols.findIndex((each) => {
      if (!keys.has(each)) wanted.add(each);
      return wanted.size > spareCodes.length;
    });
    return end < 0 ? symbols.length : end;
  }

  /** Puts them on keys; they fit. True when the map has changed by it. */
  lend(symbols: readonly number[]): boolean {
    const missing = new Set(symbols.filter((each) => this.find(each) === undefined));
    if (missing.size === 0) return false;
    const kept = new Map([...this.#spare].filter(([each]) => symbols.includes(each)));
    const older = [...this.#spare].filter(([each]) => !kept.has(each));
    const used = new Set(this.#spare.values());
    const free = [
      ...spareCodes.filter((code) => !used.has(code)),
      ...older.map(([, code]) => code),
    ];
    const lent = [...missing].map((each, i): [number, number] => [each, free[i] as number]);
    const taken = new Set(lent.map(([, code]) => code));
    this.#spare = new Map([...older.filter(([, code]) => !taken.has(code)), ...kept, ...lent]);
    return true;
  }

  /** As the compositor reads it: text that ends with a zero byte. */
  file(): Buffer {
    const entries = [...this.#spare].map(([keysym, code]) => ({
      name: `<C${code}>`,
      keysym,
      code,
    }));
    const codes = entries.map(({ name, code }) => `${name} = ${code + 8};`);
    const symbols = entries.map(
      ({ name, keysym }) => `key ${name} { [ 0x${keysym.toString(16)} ] };`,
    );
    return Buffer.from(`xkb_keymap {
xkb_keycodes { include "evdev+aliases(qwerty)" ${codes.join(' ')} };
xkb_types { include "complete" };
xkb_compat { include "complete" };
xkb_symbols { include "pc+us+inet(evdev)" ${symbols.join(' ')} };
};\0`);
  }
}
