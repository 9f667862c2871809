// Sends what is read piece by piece, from a few buffers used in turn: a transfer of any length leaves
// nothing behind for the collector, which would let tens of megabytes gather first.

import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { sizes } from '@cubicle/contract/guest/sizes.ts';

/**
 * A window holds four full frames, so when a fifth has been sent the host has granted the first again:
 * it has arrived, and its buffer is free.
 */
const inTurn = 5;

/**
 * `fill` reads at a position and answers how much; 0 is the end. Answers how much was sent, or nothing
 * when the host wants no more.
 */
export async function sendRead(
  channel: Channel,
  stream: number,
  length: number,
  fill: (buffer: Buffer, at: number) => number | Promise<number>,
): Promise<number | undefined> {
  const buffers: Buffer[] = [];
  let sent = 0;
  for (let turn = 0; sent < length; turn = (turn + 1) % inTurn) {
    const size = Math.min(sizes.payload, length);
    const buffer = (buffers[turn] ??= Buffer.allocUnsafeSlow(size));
    const room = buffer.subarray(0, Math.min(size, length - sent));
    const filled = await full(room, sent, fill);
    if (!(await channel.send(stream, room.subarray(0, filled)))) return undefined;
    sent += filled;
    // Only the last buffer may be partly full, or fewer than four of them would make up a window.
    if (filled < room.length) break;
  }
  return sent;
}

async function full(
  room: Buffer,
  at: number,
  fill: (buffer: Buffer, at: number) => number | Promise<number>,
): Promise<number> {
  let filled = 0;
  while (filled < room.length) {
    const got = await fill(room.subarray(filled), at + filled);
    if (got === 0) break;
    filled += got;
  }
  return filled;
}
