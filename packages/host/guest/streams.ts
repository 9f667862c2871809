// The data of an answer as a caller reads it. A reader that stalls stalls the guest: what is in between
// is one window of the channel.

import type { Answered } from './guest.ts';

const stopped = new Error('the reader stopped');

/** A file, to the end of the channel: of this length, or of any length up to a bound. */
export async function* content(
  { channel, fault }: Answered<unknown>,
  length: number | null,
  most: number,
): AsyncGenerator<Buffer, void, undefined> {
  let got = 0;
  try {
    for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
      got += piece.bytes.length;
      if (piece.stream !== 0 || got > (length ?? most)) fault('more data than was told');
      yield piece.bytes;
    }
    if (length !== null && got < length) fault('less data than was told');
  } finally {
    // Whoever stops early lets the guest stop too. Without effect at the end.
    channel.reset(stopped);
  }
}

export interface Output {
  readonly stdout: AsyncIterable<Buffer>;
  readonly stderr: AsyncIterable<Buffer>;
}

/** What a command wrote, of exactly these lengths. Stdout is read first, and both once. */
export function output(
  { channel, fault }: Answered<unknown>,
  stdoutBytes: number,
  stderrBytes: number,
): Output {
  let next = 1;

  async function* part(stream: number, length: number): AsyncGenerator<Buffer, void, undefined> {
    if (stream !== next) throw new Error('stdout is read first, and each stream once');
    let got = 0;
    try {
      while (got < length) {
        const piece = await channel.receive();
        if (piece === undefined) {
          fault('less data than was told');
          return;
        }
        got += piece.bytes.length;
        if (piece.stream !== stream || got > length) fault('other data than was told');
        yield piece.bytes;
      }
      next = stream + 1;
      if (stream === 2 && (await channel.receive()) !== undefined) fault('data after the end');
    } finally {
      if (got < length || stream === 2) channel.reset(stopped);
    }
  }

  return { stdout: part(1, stdoutBytes), stderr: part(2, stderrBytes) };
}
