// Keys and buttons that are down because of us. Whatever happens they come up again; those whose display
// was lost meanwhile come up when there is one again.

import { always } from '../../desktop/waiting.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from '../protocol/connection.ts';
import { extension } from '../protocol/extensions.ts';
import { Hand, type Release } from './hand.ts';

export class Held {
  /** What may still be down on a display that was lost. */
  #stuck: Release[] = [];

  /** Resolves when the display has carried out all that was done. */
  async during<Result>(
    context: Context,
    connection: Connection,
    work: (hand: Hand) => Promise<Result>,
  ): Promise<Result> {
    const { opcode } = await extension(context, connection, 'XTEST');
    const hand = new Hand(connection, opcode);
    let result: Result;
    try {
      for (const release of this.#stuck) hand.release(release);
      result = await work(hand);
    } catch (error) {
      // Why it failed is what the caller hears, not that letting go failed too.
      await this.#letGo(connection, hand).catch(() => {});
      throw error;
    }
    await this.#letGo(connection, hand);
    return result;
  }

  async #letGo(connection: Connection, hand: Hand): Promise<void> {
    try {
      hand.letGo();
      await connection.settled(always);
      this.#stuck = [];
    } catch (error) {
      this.#stuck = hand.pressed;
      throw error;
    }
  }
}
