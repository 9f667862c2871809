// Follows the frames of a WebSocket that passes through, so that a word of ours falls between two of them
// (RFC 6455 section 5.2).

export class FrameCounter {
  /** Of the header that is under way. */
  #header: number[] = [];
  #payload = 0;

  /** True where a frame may begin. */
  get between(): boolean {
    return this.#header.length === 0 && this.#payload === 0;
  }

  /** Answers how many of these bytes to pass on: all, or those up to the end of the frame under way. */
  follow(chunk: Uint8Array, upToItsEnd: boolean): number {
    let at = 0;
    while (at < chunk.length) {
      if (upToItsEnd && this.between) return at;
      if (this.#payload > 0) {
        const some = Math.min(this.#payload, chunk.length - at);
        this.#payload -= some;
        at += some;
      } else {
        this.#header.push(chunk[at] as number);
        at += 1;
        this.#judge();
      }
    }
    return at;
  }

  #judge(): void {
    const [, second] = this.#header;
    if (second === undefined) return;
    const short = second & 0x7f;
    const extended = short === 126 ? 2 : short === 127 ? 8 : 0;
    const masked = (second & 0x80) === 0 ? 0 : 4;
    if (this.#header.length < 2 + extended + masked) return;
    const length = this.#header.slice(2, 2 + extended).reduce((sum, byte) => sum * 256 + byte, 0);
    this.#payload = extended === 0 ? short : length;
    this.#header = [];
  }
}

/** A close frame as a server sends it. */
export function closeFrame(code: number, reason: string): Buffer {
  const payload = Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]);
  return Buffer.concat([Buffer.from([0x88, payload.length]), payload]);
}
