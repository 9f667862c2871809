// What a hand does with the mouse. The pauses let programs tell clicks from each other, and what is
// dragged from what is dropped.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { pause } from './waiting.ts';
import type { Hand, Point } from './devices.ts';

export const buttons = { left: 1, middle: 2, right: 3 } as const;
export type Button = keyof typeof buttons;

const wheel = { up: 4, down: 5, left: 6, right: 7 } as const;
export type Direction = keyof typeof wheel;

/** Programs take presses within 250 to 500 ms for one multiple click. */
const pressMs = 12;
const betweenPressesMs = 40;
const betweenNotchesMs = 8;
const dragSteps = { least: 4, most: 40, pixels: 16, ms: 8 } as const;
/** A program that is told of a drag looks at what is under the pointer first. */
const dragRestMs = 40;

export async function click(
  context: Context,
  hand: Hand,
  button: Button,
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    if (i > 0) await pause(context, betweenPressesMs);
    const up = hand.button(buttons[button]);
    await pause(context, pressMs);
    up();
  }
}

/** From where the pointer is when that is not known: then there are no steps in between. */
export async function drag(
  context: Context,
  hand: Hand,
  from: Point | undefined,
  to: Point,
): Promise<void> {
  if (from !== undefined) hand.move(from.x, from.y);
  const up = hand.button(buttons.left);
  await pause(context, dragRestMs);
  const start = from ?? to;
  const distance = Math.hypot(to.x - start.x, to.y - start.y);
  const wanted = Math.ceil(distance / dragSteps.pixels);
  const steps = Math.min(dragSteps.most, Math.max(dragSteps.least, wanted));
  for (let i = 1; i <= steps; i += 1) {
    const along = (first: number, last: number) => Math.round(first + ((last - first) * i) / steps);
    hand.move(along(start.x, to.x), along(start.y, to.y));
    await pause(context, dragSteps.ms);
  }
  await pause(context, dragRestMs);
  up();
}

export async function scroll(
  context: Context,
  hand: Hand,
  direction: Direction,
  amount: number,
): Promise<void> {
  for (let i = 0; i < amount; i += 1) {
    if (i > 0) await pause(context, betweenNotchesMs);
    hand.button(wheel[direction])();
  }
}
