// The clipboard for callers. What was written stays there as long as this agent's display does, or until
// another program puts something else there.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import type { Display } from '../protocol/display.ts';
import { request } from '../protocol/request.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { Turns } from '../../desktop/waiting.ts';
import { SelectionOwner } from './owner.ts';
import { readSelection, selectionOwner } from './read.ts';

/** Bytes of UTF-8 (wire-guest section 8). */
const mostBytes = 131_072;
const currentTime = 0;

export class Clipboard {
  readonly #display: Display;
  readonly #turns = new Turns();
  #owner: SelectionOwner | undefined;

  constructor(display: Display) {
    this.#display = display;
  }

  /** Whether what was written last is still there. */
  get owned(): boolean {
    return this.#owner?.lost === false;
  }

  /** Trouble `too_large` beyond 131072 bytes. */
  async read(context: Context): Promise<string> {
    const { connection, selection } = await this.#place(context);
    return readSelection(context, connection, selection, mostBytes);
  }

  /** Resolves when it can be read back. Trouble `contention` when another program was quicker. */
  write(context: Context, text: string): Promise<void> {
    return this.#turns.take(context, async () => {
      if (Buffer.byteLength(text) > mostBytes) throw new DisplayError('too_large', 'the text');
      const { connection, selection } = await this.#place(context);
      await (text === ''
        ? this.#clear(context, connection, selection)
        : this.#own(context, connection, selection, text));
      if ((await readSelection(context, connection, selection, mostBytes)) !== text) {
        throw new DisplayError('contention', 'another program took the clipboard');
      }
    });
  }

  async #own(
    context: Context,
    connection: Connection,
    selection: number,
    text: string,
  ): Promise<void> {
    const before = this.#owner;
    this.#owner = await SelectionOwner.take(context, connection, selection, text);
    before?.release();
  }

  async #clear(context: Context, connection: Connection, selection: number): Promise<void> {
    connection.send(request(22, 0, 0, selection, currentTime));
    this.#owner?.release();
    this.#owner = undefined;
    if ((await selectionOwner(context, connection, selection)) !== 0) {
      throw new DisplayError('contention', 'another program took the clipboard');
    }
  }

  async #place(context: Context) {
    const connection = await this.#display.connection(context);
    const { CLIPBOARD } = await atoms(context, connection, ['CLIPBOARD']);
    return { connection, selection: CLIPBOARD };
  }
}
