// Text as the keys that type it.

import { InvalidInput } from './invalid-input.ts';
import { isTypable } from './key-names.ts';
import { keysymOf, keysyms } from './keysyms.ts';

/** `physical`: only keys that a keyboard has. `unicode`: none of them. */
export type Mechanism = 'physical' | 'unicode' | 'mixed';

const controls: ReadonlyMap<string, number> = new Map([
  ['\t', keysyms.get('Tab') as number],
  ['\n', keysyms.get('Return') as number],
]);

/** Trouble `invalid` for what no key types, before any is pressed. */
export function keysOfText(text: string): { symbols: number[]; mechanism: Mechanism } {
  const symbols = Array.from(text.replaceAll('\r\n', '\n'), (character) => {
    const codePoint = character.codePointAt(0) as number;
    const control = controls.get(character);
    if (control !== undefined) return control;
    if (isTypable(codePoint)) return keysymOf(codePoint);
    const number = codePoint.toString(16).toUpperCase().padStart(4, '0');
    throw new InvalidInput(`no key types the character U+${number}`);
  });
  const physical = /[\t-~]/.test(text);
  const unicode = /[^\t-~]/.test(text);
  return { symbols, mechanism: physical && unicode ? 'mixed' : unicode ? 'unicode' : 'physical' };
}
