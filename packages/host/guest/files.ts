// Files of a guest: read, written whole, listed (wire-guest section 9).

import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  decodeMessage,
  type FileRange,
  listAnswer,
  listedName,
  listing,
  type Listing,
  readAnswer,
  writeAnswer,
} from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Guest } from './guest.ts';
import { outcome, refusedFile, type Result } from './result.ts';
import { content } from './streams.ts';

export interface ReadFile {
  /** Of the file; nothing for what has no measure, such as /proc, which is then sent whole. */
  readonly size: number | null;
  /** Where the bytes stand in it, and how many they are. */
  readonly start: number;
  readonly length: number | null;
  /** Once. Throws when the guest breaks off: what was read is then not the file. */
  readonly content: AsyncIterable<Buffer>;
}

export async function readFile(
  context: Context,
  guest: Guest,
  path: string,
  range: FileRange | null,
): Promise<Result<ReadFile>> {
  const result = await guest.ask(
    context,
    { op: 'read', path, range, most: limits.file },
    readAnswer,
    (refusal) => refusedFile(refusal, path),
  );
  if (!result.ok) return result;
  const { start, length, size } = result.answer;
  try {
    if (!fits(result.answer)) result.fault('a piece of a file that cannot be');
  } catch (error) {
    return outcome(error);
  }
  return { ok: true, start, length, size, content: content(result, length, limits.file) };
}

function fits({ start, length, size }: Pick<ReadFile, 'start' | 'length' | 'size'>): boolean {
  if (length === null || size === null) return length === null && size === null && start === 0;
  return length <= limits.file && start + length <= size;
}

/**
 * The file appears whole or not at all. `source` is read as fast as the guest writes; it is neither ended
 * nor destroyed here, and is left half read when the guest refuses. What it throws is thrown on.
 */
export async function writeFile(
  context: Context,
  guest: Guest,
  path: string,
  options: { readonly createOnly: boolean },
  source: AsyncIterable<Uint8Array>,
): Promise<Result<{ readonly bytes: number }>> {
  let sent = 0;
  const result = await guest.ask(
    context,
    { op: 'write', path, create_only: options.createOnly, most: limits.file },
    writeAnswer,
    (refusal) => refusedFile(refusal, path),
    async (channel) => {
      sent = await sendAll(channel, source);
      if (sent <= limits.file) channel.end();
    },
  );
  if (!result.ok) return result;
  const { bytes } = result.answer;
  try {
    if (bytes !== sent) result.fault('another number of bytes than was sent');
  } catch (error) {
    return outcome(error);
  }
  return { ok: true, bytes };
}

/** By hand: leaving a `for await` would destroy the source, and with it the caller's connection. */
async function sendAll(channel: Channel, source: AsyncIterable<Uint8Array>): Promise<number> {
  const chunks = source[Symbol.asyncIterator]();
  const over = channel.until(() => channel.over);
  let sent = 0;
  try {
    for (;;) {
      // A source may rest for long; a guest that has already refused is not kept waiting for it.
      const next = await Promise.race([chunks.next(), over]);
      if (next === undefined || next.done === true) break;
      const { buffer, byteOffset, byteLength } = next.value;
      // One byte too many makes the guest refuse; more need not travel.
      const most = Math.min(byteLength, limits.file + 1 - sent);
      if (!(await channel.send(0, Buffer.from(buffer, byteOffset, most)))) break;
      sent += most;
      if (sent > limits.file) break;
    }
  } catch (error) {
    channel.reset(error);
  }
  return sent;
}

function readListing(text: Buffer, fault: (message: string) => never): Listing {
  let found: Listing;
  try {
    found = decodeMessage(text, listing);
  } catch {
    return fault('a listing of the wrong shape');
  }
  return found.entries.every(({ name }) => listedName(name)) ? found : fault('a name that is none');
}

export async function listFiles(
  context: Context,
  guest: Guest,
  path: string,
): Promise<Result<Listing>> {
  const result = await guest.ask(context, { op: 'list', path }, listAnswer, (refusal) =>
    refusedFile(refusal, path),
  );
  if (!result.ok) return result;
  const { bytes } = result.answer;
  try {
    const text = Buffer.concat(await Array.fromAsync(content(result, bytes, bytes)));
    return { ok: true, ...readListing(text, result.fault) };
  } catch (error) {
    return outcome(error);
  }
}
