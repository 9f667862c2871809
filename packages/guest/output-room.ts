// The room that all kept output may take. It lies in a tmpfs, so it is the guest's memory.

const MiB = 1024 * 1024;

export class OutputRoom {
  readonly #most: number;
  #used = 0;
  /** Gives up the oldest output that nobody may still be waiting for; false when there is none. */
  makeRoom: () => boolean = () => false;

  constructor(most = 256 * MiB) {
    this.#most = most;
  }

  /** How many of these bytes may be kept. */
  claim(bytes: number): number {
    while (this.#used + bytes > this.#most && this.makeRoom());
    const granted = Math.min(bytes, this.#most - this.#used);
    this.#used += granted;
    return granted;
  }

  release(bytes: number): void {
    this.#used -= bytes;
  }
}
