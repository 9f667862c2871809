// One at a time per name, in the order of asking.

export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.catch(() => {});
    this.#last.set(name, settled);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    }
  }
}
