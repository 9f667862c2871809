// Mouse and keyboard of an X server.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Devices, Hand, Keys, Point } from '../../desktop/devices.ts';
import { pointerPosition } from '../picture/grab.ts';
import type { Display } from '../protocol/display.ts';
import { Held } from './held.ts';
import { Keyboard } from './keyboard.ts';

export class X11Devices implements Devices {
  readonly #display: Display;
  readonly #held = new Held();
  readonly #keyboard = new Keyboard();

  constructor(display: Display) {
    this.#display = display;
  }

  async during(context: Context, work: (hand: Hand, keys: Keys) => Promise<void>): Promise<void> {
    const connection = await this.#display.connection(context);
    await this.#held.during(context, connection, (hand) =>
      work(hand, {
        hold: (symbols) => this.#keyboard.hold(context, connection, hand, symbols),
        type: (symbols) => this.#keyboard.type(context, connection, hand, symbols),
      }),
    );
  }

  async position(context: Context): Promise<Point> {
    return pointerPosition(context, await this.#display.connection(context));
  }

  /** The server can always say where it is. */
  sharing(viewing: Promise<void>): Promise<void> {
    return viewing;
  }
}
