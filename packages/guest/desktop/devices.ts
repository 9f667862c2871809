// Mouse and keyboard as a hand uses them, whatever they are made of.

import type { Context } from '@cubicle/contract/guest/mux.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Buttons as X11 counts them: left, middle, right, and the wheel's four directions. */
export interface Hand {
  move(x: number, y: number): void;
  /** Answers what brings it up. */
  button(button: number): () => void;
  /** It stays down when we have left. */
  buttonDown(button: number): void;
  buttonUp(button: number): void;
}

/** Keys by their symbols (keysyms). */
export interface Keys {
  /** Presses keys together, in order. Answers what releases them. */
  hold(symbols: readonly number[]): Promise<() => void>;
  /** Presses keys one after the other. */
  type(symbols: readonly number[]): Promise<void>;
}

export interface Devices {
  /** Resolves when the desktop has carried out all that was done. Whatever happens, nothing stays down. */
  during(context: Context, work: (hand: Hand, keys: Keys) => Promise<void>): Promise<void>;
  /** Where the pointer is; undefined when nobody can say. */
  position(context: Context): Promise<Point | undefined>;
  /** A viewer of the live screen can move it as long as this lasts. */
  sharing(viewing: Promise<void>): Promise<void>;
}
