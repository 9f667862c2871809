// What the XTEST extension makes happen, as though a hand had done it.

import type { Hand as Moves } from '../../desktop/devices.ts';
import type { Connection } from '../protocol/connection.ts';
import { pair, quad, request } from '../protocol/request.ts';

const types = { keyPress: 2, keyRelease: 3, buttonPress: 4, buttonRelease: 5, motion: 6 } as const;
const fakeInput = 2;

/** How something that is down comes up. */
export interface Release {
  readonly type: typeof types.keyRelease | typeof types.buttonRelease;
  readonly detail: number;
}

export class Hand implements Moves {
  readonly #connection: Connection;
  readonly #opcode: number;
  /** In the order in which they went down. */
  readonly #down: Release[] = [];
  /** All that ever went down, once each. */
  readonly #pressed = new Map<string, Release>();

  constructor(connection: Connection, opcode: number) {
    this.#connection = connection;
    this.#opcode = opcode;
  }

  get pressed(): Release[] {
    return [...this.#pressed.values()];
  }

  move(x: number, y: number): void {
    this.#fake(types.motion, 0, x, y);
  }

  /** Both answer what brings it up. */
  key(keycode: number): () => void {
    return this.#hold(types.keyPress, { type: types.keyRelease, detail: keycode });
  }

  button(button: number): () => void {
    return this.#hold(types.buttonPress, { type: types.buttonRelease, detail: button });
  }

  /** It stays down when we have left. */
  buttonDown(button: number): void {
    this.#fake(types.buttonPress, button);
  }

  buttonUp(button: number): void {
    this.#fake(types.buttonRelease, button);
  }

  release({ type, detail }: Release): void {
    this.#fake(type, detail);
  }

  letGo(): void {
    for (const release of this.#down.splice(0).toReversed()) this.release(release);
  }

  #hold(press: number, release: Release): () => void {
    this.#down.push(release);
    this.#pressed.set(`${release.type}:${release.detail}`, release);
    this.#fake(press, release.detail);
    return () => {
      const at = this.#down.indexOf(release);
      if (at < 0) return;
      this.#down.splice(at, 1);
      this.release(release);
    };
  }

  #fake(type: number, detail: number, x = 0, y = 0): void {
    // Now, on the only screen.
    const when = [0, 0];
    this.#connection.send(
      request(this.#opcode, fakeInput, quad(type, detail), ...when, 0, 0, pair(x, y), 0, 0),
    );
  }
}
