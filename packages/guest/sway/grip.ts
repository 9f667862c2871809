// What is down because of us, in the order in which it went down: all of it comes up again.

export class Grip {
  readonly #down = new Set<() => void>();

  /** It is down already. Answers what brings it up. */
  hold(release: () => void): () => void {
    const up = () => {
      if (this.#down.delete(up)) release();
    };
    this.#down.add(up);
    return up;
  }

  letGo(): void {
    for (const up of [...this.#down].toReversed()) up();
  }
}
