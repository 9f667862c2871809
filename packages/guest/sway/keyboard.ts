// What a hand does with the keyboard that the agent has made. The compositor keeps no account of its
// modifiers: which of them are down is told with every change.

import { isShift } from '@cubicle/contract/desktop/key-names.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Keys } from '../desktop/devices.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { pause } from '../desktop/waiting.ts';
import type { Compositor } from './compositor.ts';
import type { Grip } from './grip.ts';
import { now } from './hand.ts';
import { capsLock, type Key, Keymap, lockBits, modifierBits, shiftLeft } from './keymap.ts';

const keyboard = { keymap: 0, key: 1, modifiers: 2 } as const;
const state = { up: 0, down: 1 } as const;
const keymapText = 1;
/** Programs are told everything in order; this is for those that are slow. */
const betweenKeysMs = 6;

export class VirtualKeyboard {
  readonly #compositor: Compositor;
  readonly #keymap = new Keymap();
  /** By modifier, how many keys hold it. */
  readonly #held = new Map<number, number>();
  #locked = 0;

  constructor(compositor: Compositor) {
    this.#compositor = compositor;
    this.#tellKeymap();
  }

  keys(context: Context, grip: Grip): Keys {
    return {
      hold: async (symbols) => this.#hold(grip, symbols),
      type: (symbols) => this.#type(context, grip, symbols),
    };
  }

  #hold(grip: Grip, symbols: readonly number[]): () => void {
    if (this.#keymap.fitting(symbols) < symbols.length) {
      throw new DisplayError('refused', 'the keyboard has no free keys');
    }
    this.#lend(symbols);
    const needsShift =
      symbols.some((symbol) => this.#find(symbol).shifted) && !symbols.some(isShift);
    const ups = [...(needsShift ? [shiftLeft] : []), ...symbols].map((symbol) =>
      this.#press(grip, symbol),
    );
    return () => {
      for (const up of ups.toReversed()) up();
    };
  }

  async #type(context: Context, grip: Grip, symbols: readonly number[]): Promise<void> {
    for (let at = 0; at < symbols.length;) {
      const count = this.#keymap.fitting(symbols.slice(at));
      const some = symbols.slice(at, at + count);
      // All at once: every new map is read by every program.
      this.#lend(some);
      for (const symbol of some) {
        this.#hold(grip, [symbol])();
        await pause(context, betweenKeysMs);
      }
      at += count;
    }
  }

  #press(grip: Grip, symbol: number): () => void {
    const { code } = this.#find(symbol);
    const modifier = modifierBits.get(symbol) ?? 0;
    this.#compositor.keyboard(keyboard.key, now(), code, state.down);
    this.#locked ^= lockBits.get(symbol) ?? 0;
    this.#count(modifier, 1);
    return grip.hold(() => {
      this.#compositor.keyboard(keyboard.key, now(), code, state.up);
      this.#count(modifier, -1);
    });
  }

  #count(modifier: number, more: number): void {
    this.#held.set(modifier, (this.#held.get(modifier) ?? 0) + more);
    let down = 0;
    for (const [bit, times] of this.#held) if (times > 0) down |= bit;
    this.#compositor.keyboard(keyboard.modifiers, down, 0, this.#locked, 0);
  }

  #find(symbol: number): Key {
    const key = this.#keymap.find(symbol);
    if (key === undefined) throw new DisplayError('refused', 'the keyboard lacks a key');
    const letter = (symbol >= 0x41 && symbol <= 0x5a) || (symbol >= 0x61 && symbol <= 0x7a);
    const capitals = (this.#locked & capsLock) !== 0;
    return letter && capitals ? { ...key, shifted: !key.shifted } : key;
  }

  #lend(symbols: readonly number[]): void {
    if (this.#keymap.lend(symbols)) this.#tellKeymap();
  }

  #tellKeymap(): void {
    const file = this.#keymap.file();
    this.#compositor.keyboardWithFile(file, keyboard.keymap, keymapText, file.length);
  }
}
