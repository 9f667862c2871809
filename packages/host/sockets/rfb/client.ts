// What a viewer says to the VNC server, from ClientInit on (RFC 6143 sections 7.3 and 7.5). A watcher's
// messages pass only if they cannot change anything; of a controller's it is noted when somebody acts.

import { mayWatchWith } from './encodings.ts';
import { type Pixels, readPixels } from './pixels.ts';
import { type Grammar, Unreadable } from './sieve.ts';

/** What both sides of one conversation know. */
export interface Conversation {
  /** As last agreed; undefined until the server has told its own. */
  pixels: Pixels | undefined;
  /** After the first request for a picture the format stands, or its bytes could not be told apart. */
  asked: boolean;
}

const shared = Buffer.from([1]);

const types = {
  pixelFormat: 0,
  encodings: 2,
  updateRequest: 3,
  key: 4,
  pointer: 5,
  cutText: 6,
  continuousUpdates: 150,
  fence: 248,
  xvp: 250,
  desktopSize: 251,
  qemu: 255,
} as const;

export function* watching(conversation: Conversation): Grammar {
  // Whoever watches shares the desktop.
  yield { read: 1 };
  yield { pass: 0, instead: shared };
  for (;;) {
    const type = (yield { read: 1 }).readUInt8(0);
    switch (type) {
      case types.pixelFormat: {
        const format = (yield { read: 19 }).subarray(3);
        if (conversation.asked) throw new Unreadable('another pixel format half way');
        conversation.pixels = readPixels(format);
        yield { pass: 0 };
        break;
      }
      case types.encodings: {
        const count = (yield { read: 3 }).readUInt16BE(1);
        const offered = count === 0 ? Buffer.alloc(0) : yield { read: 4 * count };
        yield { pass: 0, instead: setEncodings(offered) };
        break;
      }
      case types.updateRequest:
        yield { read: 9 };
        conversation.asked = true;
        yield { pass: 0 };
        break;
      default:
        yield { drop: yield* lengthOf(type) };
    }
  }
}

/** Everything passes. What cannot be read is not understood any further, and taken for use of the computer. */
export function* controlling(used: () => void): Grammar {
  yield { pass: 1 };
  for (;;) {
    const type = (yield { read: 1 }).readUInt8(0);
    if (type === types.key || type === types.pointer || type === types.cutText) used();
    if (type === types.pixelFormat) yield { pass: 19 };
    else if (type === types.updateRequest) yield { pass: 9 };
    else if (type === types.encodings) {
      const count = (yield { read: 3 }).readUInt16BE(1);
      yield { pass: 4 * count };
    } else yield { pass: yield* lengthOf(type) };
  }
}

/** How long the rest of a message is that changes something, after its type. */
function* lengthOf(type: number): Generator<{ read: number }, number, Buffer> {
  switch (type) {
    case types.key:
      return 7;
    case types.pointer:
      return 5;
    case types.cutText:
      // Negative where it is the extended clipboard.
      return Math.abs((yield { read: 7 }).readInt32BE(3));
    case types.continuousUpdates:
      return 9;
    case types.fence:
      return (yield { read: 8 }).readUInt8(7);
    case types.xvp:
      return 3;
    case types.desktopSize:
      return 16 * (yield { read: 7 }).readUInt8(5);
    case types.qemu:
      // A key with its scan code; the other kinds carry sound.
      if ((yield { read: 1 }).readUInt8(0) !== 0)
        throw new Unreadable('a message without a length');
      return 10;
    default:
      throw new Unreadable(`a message without a length: ${type}`);
  }
}

function setEncodings(offered: Buffer): Buffer {
  const kept: number[] = [];
  for (let at = 0; at < offered.length; at += 4) {
    const encoding = offered.readInt32BE(at);
    if (mayWatchWith(encoding)) kept.push(encoding);
  }
  const message = Buffer.alloc(4 + 4 * kept.length);
  message.writeUInt8(types.encodings, 0);
  message.writeUInt16BE(kept.length, 2);
  kept.forEach((encoding, i) => message.writeInt32BE(encoding, 4 + 4 * i));
  return message;
}
