// What a hand does with the pointer that the agent has made.

import type { Hand, Point } from '../desktop/devices.ts';
import type { Size } from '../desktop/picture/picture.ts';
import type { Compositor } from './compositor.ts';
import type { Grip } from './grip.ts';
import { fixed } from './wire.ts';

const pointer = { moveTo: 1, button: 2, frame: 4, axisSource: 5, axisDiscrete: 7 } as const;
const state = { up: 0, down: 1 } as const;
const wheelSource = 0;

/** As Linux counts them: left, middle, right. */
const buttonCodes: Readonly<Record<number, number>> = { 1: 0x110, 2: 0x112, 3: 0x111 };
/** Up, down, left, right: the axis, and which way along it. */
const wheel: Readonly<Record<number, readonly [axis: number, way: number]>> = {
  4: [0, -1],
  5: [0, 1],
  6: [1, -1],
  7: [1, 1],
};
/** How far one notch goes, as a mouse has it. */
const notch = 15;

export class VirtualHand implements Hand {
  readonly #compositor: Compositor;
  readonly #screen: Size;
  readonly #grip: Grip;
  /** Where it was put last. */
  position: Point | undefined;

  constructor(compositor: Compositor, screen: Size, grip: Grip) {
    this.#compositor = compositor;
    this.#screen = screen;
    this.#grip = grip;
  }

  move(x: number, y: number): void {
    const { width, height } = this.#screen;
    const on = (value: number, side: number) => Math.max(0, Math.min(value, side - 1));
    this.position = { x: on(x, width), y: on(y, height) };
    const { x: right, y: down } = this.position;
    this.#compositor.pointer(pointer.moveTo, now(), right, down, width, height);
    this.#compositor.pointer(pointer.frame);
  }

  button(button: number): () => void {
    const turned = wheel[button];
    if (turned !== undefined) {
      this.#turn(...turned);
      return () => {};
    }
    this.buttonDown(button);
    return this.#grip.hold(() => this.buttonUp(button));
  }

  buttonDown(button: number): void {
    this.#set(button, state.down);
  }

  buttonUp(button: number): void {
    this.#set(button, state.up);
  }

  #set(button: number, to: number): void {
    this.#compositor.pointer(pointer.button, now(), buttonCodes[button] ?? 0, to);
    this.#compositor.pointer(pointer.frame);
  }

  #turn(axis: number, way: number): void {
    this.#compositor.pointer(pointer.axisSource, wheelSource);
    this.#compositor.pointer(pointer.axisDiscrete, now(), axis, fixed(way * notch), way);
    this.#compositor.pointer(pointer.frame);
  }
}

/** Milliseconds of any beginning. */
export function now(): number {
  return Math.floor(performance.now()) >>> 0;
}
