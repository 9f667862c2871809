// Keys by name: our own names, X11's, and single characters; chords are joined by `+`.

import { InvalidInput } from './invalid-input.ts';
import { keysymOf, keysyms } from './keysyms.ts';

/** Our own names, in any case. The key with the maker's sign has many. */
const ownNames: Readonly<Record<string, string>> = {
  ctrl: 'Control_L',
  control: 'Control_L',
  shift: 'Shift_L',
  alt: 'Alt_L',
  option: 'Alt_L',
  altgr: 'ISO_Level3_Shift',
  super: 'Super_L',
  meta: 'Super_L',
  cmd: 'Super_L',
  command: 'Super_L',
  win: 'Super_L',
  windows: 'Super_L',
  enter: 'Return',
  return: 'Return',
  esc: 'Escape',
  escape: 'Escape',
  tab: 'Tab',
  space: 'space',
  spacebar: 'space',
  backspace: 'BackSpace',
  delete: 'Delete',
  del: 'Delete',
  insert: 'Insert',
  ins: 'Insert',
  home: 'Home',
  end: 'End',
  pageup: 'Page_Up',
  page_up: 'Page_Up',
  pgup: 'Page_Up',
  pagedown: 'Page_Down',
  page_down: 'Page_Down',
  pgdn: 'Page_Down',
  up: 'Up',
  down: 'Down',
  left: 'Left',
  right: 'Right',
  arrowup: 'Up',
  arrowdown: 'Down',
  arrowleft: 'Left',
  arrowright: 'Right',
  capslock: 'Caps_Lock',
  numlock: 'Num_Lock',
  scrolllock: 'Scroll_Lock',
  printscreen: 'Print',
  pause: 'Pause',
  menu: 'Menu',
};

const modifiers = new Set(
  ['Shift', 'Control', 'Alt', 'Super', 'Meta', 'Hyper']
    .flatMap((name) => [`${name}_L`, `${name}_R`])
    .concat('ISO_Level3_Shift')
    .map((name) => keysyms.get(name) as number),
);
const shifts = new Set(['Shift_L', 'Shift_R'].map((name) => keysyms.get(name) as number));
/** Longer ones are no names, and are not repeated to the caller. */
const longestName = 64;

function isModifier(keysym: number): boolean {
  return modifiers.has(keysym);
}

export function isShift(keysym: number): boolean {
  return shifts.has(keysym);
}

/** The symbols of keys that are held together, in order. Trouble `invalid` names a key that is unknown. */
export function parseChord(keys: readonly string[]): number[] {
  const symbols = keys.flatMap(parts).map(keysymNamed);
  if (symbols.length === 0) throw new InvalidInput('no key is named');
  const unique = [...new Set(symbols)];
  const others = unique.filter((symbol) => !isModifier(symbol));
  return [...unique.filter(isModifier), ...lowered(unique, others)];
}

/** Modifiers that are held during something else. */
export function parseModifiers(text: string): number[] {
  if (text === '') return [];
  return parts(text).map((name) => {
    const symbol = keysymNamed(name);
    if (!isModifier(symbol)) throw new InvalidInput(`not a modifier: ${shown(name)}`);
    return symbol;
  });
}

/** `ctrl+C` means the key of C and not one more modifier; `C` alone is a capital. */
function lowered(all: readonly number[], others: readonly number[]): number[] {
  const commanded = all.some((symbol) => isModifier(symbol));
  const capital = (symbol: number) => symbol >= 0x41 && symbol <= 0x5a;
  return others.map((symbol) => (commanded && capital(symbol) ? symbol + 0x20 : symbol));
}

/** A `+` that nothing follows is the key itself. */
function parts(keys: string): string[] {
  if (keys === '+') return ['plus'];
  if (keys.endsWith('++')) return [...keys.slice(0, -2).split('+'), 'plus'];
  return keys.split('+');
}

function keysymNamed(name: string): number {
  const found =
    keysyms.get(name) ??
    keysyms.get(ownNames[name.toLowerCase()] ?? '') ??
    functionKey(name) ??
    byNumber(name) ??
    byCharacter(name);
  if (found === undefined) throw new InvalidInput(`unknown key: ${shown(name)}`);
  return found;
}

function functionKey(name: string): number | undefined {
  return /^f\d{1,2}$/.test(name) ? keysyms.get(name.toUpperCase()) : undefined;
}

function byNumber(name: string): number | undefined {
  const digits = /^U\+?([0-9A-Fa-f]{4,6})$/.exec(name)?.[1];
  const codePoint = digits === undefined ? Number.NaN : Number.parseInt(digits, 16);
  return isTypable(codePoint) ? keysymOf(codePoint) : undefined;
}

function byCharacter(name: string): number | undefined {
  const [character, ...more] = name;
  const codePoint = more.length > 0 ? undefined : character?.codePointAt(0);
  return codePoint !== undefined && isTypable(codePoint) ? keysymOf(codePoint) : undefined;
}

/** No controls and no halves of a character. */
export function isTypable(codePoint: number): boolean {
  return (
    (codePoint >= 0x20 && codePoint <= 0x7e) ||
    (codePoint >= 0xa0 && codePoint <= 0xd7ff) ||
    (codePoint >= 0xe000 && codePoint <= 0x10ffff)
  );
}

function shown(name: string): string {
  return JSON.stringify(name.length > longestName ? `${name.slice(0, longestName)}...` : name);
}
