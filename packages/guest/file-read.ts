// Reads a file for the host: measured first, then sent as fast as the host takes it.

import { constants } from 'node:fs';
import { type FileHandle, open, readlink, stat } from 'node:fs/promises';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { encodeMessage, type GuestRequest } from '@cubicle/contract/guest/messages.ts';
import { resolveRange } from '@cubicle/contract/guest/range.ts';
import { Refused } from './refused.ts';
import { sendRead } from './sending.ts';

type ReadRequest = Extract<GuestRequest, { op: 'read' }>;

export async function readFile(channel: Channel, asked: ReadRequest): Promise<void> {
  // A pipe or a device is not even opened: that alone may have effects.
  if (!(await stat(asked.path)).isFile()) throw new Refused('not_a_file');
  const file = await open(asked.path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new Refused('not_a_file');
    const measured = !(await isMadeUp(file)) && (found.size > 0 || (await isEmpty(file)));
    await (measured
      ? sendMeasured(channel, file, found.size, asked)
      : sendUnmeasured(channel, file, asked.most));
  } finally {
    await file.close();
  }
}

async function sendMeasured(
  channel: Channel,
  file: FileHandle,
  size: number,
  { range, most }: ReadRequest,
): Promise<void> {
  const window = resolveRange(size, range, most);
  if (typeof window === 'string') throw new Refused(window, { size });
  const { start, length } = window;
  channel.accept(encodeMessage({ start, length, size }));
  const sent = await sendRead(channel, 0, length, reader(file, start));
  if (sent === undefined) return;
  // The file was cut while it was read. The host has been told a length, so it must not look complete.
  if (sent < length) throw new Error('the file became shorter');
  channel.end();
}

/** Made up as it is read, and sent from the beginning to its end. */
async function sendUnmeasured(channel: Channel, file: FileHandle, most: number): Promise<void> {
  // Read once before the answer: what cannot be read at all is refused and not cut off.
  await isEmpty(file);
  channel.accept(encodeMessage({ start: 0, length: null, size: null }));
  const sent = await sendRead(channel, 0, most + 1, reader(file, 0));
  if (sent === undefined) return;
  if (sent > most) throw new Error('the file does not end');
  channel.end();
}

function reader(file: FileHandle, start: number) {
  return async (buffer: Buffer, at: number) =>
    (await file.read(buffer, 0, buffer.length, start + at)).bytesRead;
}

/** Files of the kernel state a size of 0 or of a page, whatever they hold. */
async function isMadeUp(file: FileHandle): Promise<boolean> {
  return /^\/(proc|sys)\//.test(await readlink(`/proc/self/fd/${file.fd}`));
}

async function isEmpty(file: FileHandle): Promise<boolean> {
  return (await file.read(Buffer.alloc(1), 0, 1, 0)).bytesRead === 0;
}
