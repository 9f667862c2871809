// The bounds of the protocol between a host and the agent in a guest. Sizes in bytes.

import { limits } from '../limits.ts';

const KiB = 1024;

/** Both sides speak exactly this; an agent that meets another number makes way for its successor. */
export const guestProtocol = 4;

const payload = 64 * KiB;

/**
 * What a data frame costs beyond its bytes. It bounds the frames in a window (516 of one byte), so that
 * a peer that sends tiny ones cannot make the receiver keep an object per byte.
 */
export const frameCost = 512;

export const sizes = {
  header: 10,
  payload,
  /** Credit of one channel in one direction: four full frames. */
  window: 4 * (payload + frameCost),
  /** A sender waits for room for this much rather than sending crumbs. */
  worthSending: 16 * KiB,
  /** JSON by frame. `open` holds one path of 4096 bytes, escaped; `hello` the executions that are kept. */
  hello: payload,
  open: 16 * KiB,
  answer: 4 * KiB,
  /** A window, its title in four-byte characters, fits with room. */
  event: 4 * KiB,
  /** One line of a watched tree: a path of 4096 bytes, escaped. */
  watchLine: 10 * KiB,
  /** The body of a command as JSON. It says what the public request says, so it is hardly longer. */
  command: limits.execBody + 4 * KiB,
  /** Secrets as JSON, each character of 32 values escaped. */
  secrets: 1024 * KiB,
  /** The names of a listing, as JSON. */
  listing: 128 * KiB,
} as const;

export const counts = {
  /** Data streams of a channel: 0 the request, a file or a terminal, 1 stdout or messages, 2 stderr. */
  streams: 3,
  /** Channels of one link, those that wait for a peer's last word included. */
  channels: 128,
  /** Executions that ended and are still told of. */
  exitedKept: 256,
  listed: 512,
} as const;

export const keepExitedMs = 10 * 60_000;
