// Mouse and keyboard for callers: one action at a time, nothing pressed before all of it is understood,
// and nothing left down when it ends, however it ends.

import { parseChord, parseModifiers } from '@cubicle/contract/desktop/key-names.ts';
import { keysOfText, type Mechanism } from '@cubicle/contract/desktop/typed-text.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { DisplayError } from './trouble.ts';
import { pause, Turns } from './waiting.ts';
import type { Devices, Hand, Keys, Point } from './devices.ts';
import { type Button, buttons, click, type Direction, drag, scroll } from './pointer.ts';

interface Placed {
  /** Where; absent is where the pointer is. */
  readonly at?: Point;
  /** Modifiers to hold meanwhile, joined by `+`. */
  readonly modifiers?: string;
}

/** A key that goes down and up at once is missed by programs that look at the keyboard now and then. */
const pressMs = 12;
const mostClicks = 10;
const mostNotches = 50;

export class Input {
  readonly #devices: Devices;
  readonly #turns = new Turns();

  constructor(devices: Devices) {
    this.#devices = devices;
  }

  /** Undefined when nobody can say. */
  position(context: Context): Promise<Point | undefined> {
    return this.#devices.position(context);
  }

  async move(context: Context, to: Point): Promise<void> {
    await this.#placed(context, { at: to }, async () => {});
  }

  async click(
    context: Context,
    asked: Placed & { readonly button: Button; readonly count: number },
  ): Promise<void> {
    within(asked.count, mostClicks, 'clicks');
    await this.#placed(context, asked, (hand) => click(context, hand, asked.button, asked.count));
  }

  /** The button stays down until it is brought up by another call. */
  async buttonDown(context: Context, asked: Placed & { readonly button: Button }): Promise<void> {
    await this.#placed(context, asked, async (hand) => hand.buttonDown(buttons[asked.button]));
  }

  async buttonUp(context: Context, asked: Placed & { readonly button: Button }): Promise<void> {
    await this.#placed(context, asked, async (hand) => hand.buttonUp(buttons[asked.button]));
  }

  async drag(
    context: Context,
    asked: { readonly from?: Point; readonly to: Point; readonly modifiers?: string },
  ): Promise<void> {
    onScreen(asked.to);
    const { from: at, modifiers } = asked;
    const placed = { ...(at && { at }), ...(modifiers && { modifiers }) };
    await this.#placed(context, placed, async (hand) => {
      const from = at ?? (await this.#devices.position(context));
      await drag(context, hand, from, asked.to);
    });
  }

  async scroll(
    context: Context,
    asked: Placed & { readonly direction: Direction; readonly amount: number },
  ): Promise<void> {
    within(asked.amount, mostNotches, 'notches');
    const { direction, amount } = asked;
    await this.#placed(context, asked, (hand) => scroll(context, hand, direction, amount));
  }

  /** Keys held together: each a name or a chord of names. */
  async press(context: Context, keys: readonly string[]): Promise<void> {
    await this.hold(context, keys, pressMs);
  }

  async hold(context: Context, keys: readonly string[], ms: number): Promise<void> {
    const symbols = parseChord(keys);
    await this.#act(context, async (_, keyboard) => {
      const up = await keyboard.hold(symbols);
      await pause(context, ms);
      up();
    });
  }

  async type(context: Context, text: string): Promise<Mechanism> {
    const { symbols, mechanism } = keysOfText(text);
    await this.#act(context, (_, keyboard) => keyboard.type(symbols));
    return mechanism;
  }

  async #placed(
    context: Context,
    { at, modifiers = '' }: Placed,
    work: (hand: Hand) => Promise<void>,
  ): Promise<void> {
    const symbols = parseModifiers(modifiers);
    if (at !== undefined) onScreen(at);
    await this.#act(context, async (hand, keyboard) => {
      const up = await keyboard.hold(symbols);
      if (at !== undefined) hand.move(at.x, at.y);
      await work(hand);
      up();
    });
  }

  #act(context: Context, work: (hand: Hand, keys: Keys) => Promise<void>): Promise<void> {
    return this.#turns.take(context, () => this.#devices.during(context, work));
  }
}

/** X11 has 16 bits for a place. The server keeps the pointer on the screen. */
function onScreen({ x, y }: Point): void {
  const fits = (value: number) => Number.isInteger(value) && value >= -32_768 && value <= 32_767;
  if (!fits(x) || !fits(y)) throw new DisplayError('invalid', 'a place beyond any screen');
}

function within(count: number, most: number, what: string): void {
  if (Number.isInteger(count) && count >= 1 && count <= most) return;
  throw new DisplayError('invalid', `1 to ${most} ${what}`);
}
