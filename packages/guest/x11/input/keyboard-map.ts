// The keyboard's map as the display has it now: which key makes which symbol, and which keys make none.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from '../protocol/connection.ts';
import { pair, quad, request } from '../protocol/request.ts';

export interface Key {
  readonly keycode: number;
  /** Whether Shift makes it this symbol. */
  readonly shifted: boolean;
}

const capsLock = 2;
/**
 * "No symbol at all", on the fourth level of a key that we have given a symbol: nobody presses both
 * shifts there, and an agent that starts later finds the key again.
 */
const mark = 0xffffff;

export class KeyboardMap {
  readonly #keys = new Map<number, Key>();
  /** Keys with nothing on them, then those with something of ours. */
  readonly spare: readonly number[];
  readonly capsLocked: boolean;

  constructor(rows: readonly Row[], modifiers: ReadonlySet<number>, capsLocked: boolean) {
    this.capsLocked = capsLocked;
    const empty: number[] = [];
    const borrowed: number[] = [];
    for (const { keycode, symbols } of rows) {
      const [plain = 0, shifted = 0] = symbols;
      // A key that comes first is the usual one: the same symbol may be on odd keys too.
      if (plain !== 0) this.#add(plain, { keycode, shifted: false });
      if (shifted !== 0 && shifted !== plain) this.#add(shifted, { keycode, shifted: true });
      if (modifiers.has(keycode)) continue;
      if (symbols.includes(mark)) borrowed.push(keycode);
      else if (symbols.every((symbol) => symbol === 0)) empty.push(keycode);
    }
    this.spare = [...empty, ...borrowed];
  }

  find(keysym: number): Key | undefined {
    return this.#keys.get(keysym);
  }

  #add(keysym: number, key: Key): void {
    if (!this.#keys.has(keysym)) this.#keys.set(keysym, key);
  }
}

interface Row {
  readonly keycode: number;
  readonly symbols: readonly number[];
}

export async function readKeyboard(context: Context, connection: Connection): Promise<KeyboardMap> {
  const { minKeycode, maxKeycode, root } = connection.setup;
  const count = maxKeycode - minKeycode + 1;
  const getKeyboardMapping = request(101, 0, quad(minKeycode, count));
  const [rows, modifiers, capsLocked] = await Promise.all([
    connection.ask(context, getKeyboardMapping, (reply) => decodeRows(reply, minKeycode, count)),
    connection.ask(context, request(119, 0), decodeModifiers),
    connection.ask(
      context,
      request(38, 0, root),
      (reply) => (reply.readUInt16LE(24) & capsLock) !== 0,
    ),
  ]);
  return new KeyboardMap(rows, modifiers, capsLocked);
}

function decodeRows(reply: Buffer, first: number, count: number): Row[] {
  const width = reply.readUInt8(1);
  return Array.from({ length: count }, (_, i) => ({
    keycode: first + i,
    symbols: Array.from({ length: width }, (_none, j) =>
      reply.readUInt32LE(32 + 4 * (i * width + j)),
    ),
  }));
}

function decodeModifiers(reply: Buffer): Set<number> {
  const perModifier = reply.readUInt8(1);
  const keycodes = Array.from({ length: 8 * perModifier }, (_, i) => reply.readUInt8(32 + i));
  return new Set(keycodes.filter((keycode) => keycode !== 0));
}

/** Puts symbols on keys that follow each other: the same with and without Shift, in both layouts. */
export function changeKeys(
  connection: Connection,
  first: number,
  symbols: readonly number[],
): void {
  const rows = symbols.map((symbol) => [symbol, symbol, symbol, symbol, symbol, mark]);
  const width = 6;
  connection.send(request(100, symbols.length, pair(first | (width << 8), 0), ...rows.flat()));
}
