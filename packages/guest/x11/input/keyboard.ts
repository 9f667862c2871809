// What a hand does with the keyboard: finds the key for a symbol, makes one where there is none, presses.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from '../protocol/connection.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { pause } from '../../desktop/waiting.ts';
import type { Hand } from './hand.ts';
import { isShift } from '@cubicle/contract/desktop/key-names.ts';
import { type Key, type KeyboardMap, readKeyboard } from './keyboard-map.ts';
import { keysyms } from '@cubicle/contract/desktop/keysyms.ts';
import { SpareKeys } from './spare-keys.ts';

const shiftLeft = keysyms.get('Shift_L') as number;
/** A text of 400 characters takes 5 s. */
const betweenKeysMs = 12;
/** Somebody else may change the map while we do. */
const mostAttempts = 3;

export class Keyboard {
  readonly #spare = new SpareKeys();

  /** Presses keys one after the other. */
  async type(
    context: Context,
    connection: Connection,
    hand: Hand,
    symbols: readonly number[],
  ): Promise<void> {
    for (let at = 0; at < symbols.length;) {
      const { map, count } = await this.#prepare(context, connection, symbols.slice(at));
      for (const symbol of symbols.slice(at, at + count)) {
        const { keycode, shifted } = find(map, symbol);
        const shiftUp = shifted ? hand.key(find(map, shiftLeft).keycode) : () => {};
        hand.key(keycode)();
        shiftUp();
        this.#spare.pressed(keycode);
        await pause(context, betweenKeysMs);
      }
      at += count;
    }
  }

  /** Presses keys together, in order. Answers what releases them. */
  async hold(
    context: Context,
    connection: Connection,
    hand: Hand,
    symbols: readonly number[],
  ): Promise<() => void> {
    if (symbols.length === 0) return () => {};
    const { map, count } = await this.#prepare(context, connection, symbols);
    if (count < symbols.length) throw new DisplayError('refused', 'the keyboard has no free keys');
    const keys = symbols.map((symbol) => find(map, symbol));
    const codes = keys.map(({ keycode }) => keycode);
    if (keys.some(({ shifted }) => shifted) && !symbols.some(isShift)) {
      codes.unshift(find(map, shiftLeft).keycode);
    }
    const ups = codes.map((keycode) => hand.key(keycode));
    for (const keycode of codes) this.#spare.pressed(keycode);
    return () => {
      for (const up of ups.toReversed()) up();
    };
  }

  /** Sees to it that the first `count` symbols are on keys. */
  async #prepare(
    context: Context,
    connection: Connection,
    symbols: readonly number[],
  ): Promise<{ map: KeyboardMap; count: number }> {
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const map = await readKeyboard(context, connection);
      const { count, missing, kept } = this.#fitting(map, symbols);
      if (missing.length === 0 && count > 0) return { map, count };
      await this.#spare.lend(context, connection, map, missing, kept);
    }
    throw new DisplayError('contention', 'somebody else changes the keyboard');
  }

  /** The longest beginning that can be on keys at once, and what must be put there for it. */
  #fitting(map: KeyboardMap, symbols: readonly number[]) {
    const spare = new Set(map.spare);
    const kept = new Set<number>();
    const missing = new Set<number>();
    let count = 0;
    for (const symbol of symbols) {
      const keycode = map.find(symbol)?.keycode;
      const fits = kept.size + missing.size < spare.size || missing.has(symbol);
      const lent = keycode === undefined || spare.has(keycode);
      // The first is asked for even so: that it does not fit is for whoever finds it a key to say.
      if (lent && !fits && !kept.has(keycode ?? 0) && count > 0) break;
      if (keycode === undefined) missing.add(symbol);
      else if (lent) kept.add(keycode);
      count += 1;
    }
    return { count, missing: [...missing], kept };
  }
}

function find(map: KeyboardMap, symbol: number): Key {
  const key = map.find(symbol);
  if (key === undefined) throw new DisplayError('refused', 'the keyboard lacks a key');
  const letter = (symbol >= 0x41 && symbol <= 0x5a) || (symbol >= 0x61 && symbol <= 0x7a);
  return letter && map.capsLocked ? { ...key, shifted: !key.shifted } : key;
}
