// Symbols that are on no key are put on keys that make none. A program learns of it when it reads its
// events, and reads the map only then: a key keeps its new symbol until it is needed for another, and is
// not given another until programs have had time to read what it was pressed for.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from '../protocol/connection.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { pause } from '../../desktop/waiting.ts';
import { changeKeys, type KeyboardMap } from './keyboard-map.ts';

/** How far behind its events a program may be. */
const readingMs = 1_500;
/** For programs that rebuild their map beside their events. */
const settlingMs = 60;

export class SpareKeys {
  /** When each key was last pressed for us, the longest ago first. */
  readonly #pressed = new Map<number, number>();

  /** Puts all of them on keys; those on `kept` stay as they are. The map is out of date afterwards. */
  async lend(
    context: Context,
    connection: Connection,
    map: KeyboardMap,
    wanted: readonly number[],
    kept: ReadonlySet<number>,
  ): Promise<void> {
    const since = (keycode: number) => this.#pressed.get(keycode) ?? -Infinity;
    const free = map.spare
      .filter((keycode) => !kept.has(keycode))
      .toSorted((a, b) => since(a) - since(b))
      .slice(0, wanted.length)
      .toSorted((a, b) => a - b);
    if (free.length < wanted.length)
      throw new DisplayError('refused', 'the keyboard has no free keys');
    const latest = Math.max(...free.map(since));
    const wait = latest + readingMs - performance.now();
    if (wait > 0) await pause(context, wait);
    for (let at = 0; at < free.length;) {
      const first = free[at] as number;
      let count = 1;
      while (free[at + count] === first + count) count += 1;
      changeKeys(connection, first, wanted.slice(at, at + count));
      at += count;
    }
    await pause(context, settlingMs);
  }

  pressed(keycode: number): void {
    this.#pressed.set(keycode, performance.now());
  }
}
