// What the VNC server says to a watcher, from ServerInit on (RFC 6143 section 7.6): everything but the clipboard. It is a guest
// that speaks, so nothing is believed that was not asked for.

import type { Conversation } from './client.ts';
import { lastRectangle, rectangleBody } from './encodings.ts';
import { readPixels } from './pixels.ts';
import { type Grammar, type Step, Unreadable } from './sieve.ts';

const types = { update: 0, colourMap: 1, bell: 2, cutText: 3 } as const;
/** An update that does not know its length ends with a rectangle that says so. */
const uncounted = 0xffff;

export function* shown(conversation: Conversation): Grammar {
  yield* beginning(conversation);
  for (;;) {
    const type = (yield { read: 1 }).readUInt8(0);
    switch (type) {
      case types.update:
        yield* update(conversation);
        break;
      case types.colourMap: {
        const count = (yield { read: 5 }).readUInt16BE(3);
        yield { pass: 6 * count };
        break;
      }
      case types.bell:
        yield { pass: 0 };
        break;
      case types.cutText:
        // Negative where it is the extended clipboard.
        yield { drop: Math.abs((yield { read: 7 }).readInt32BE(3)) };
        break;
      default:
        throw new Unreadable(`a message that was not asked for: ${type}`);
    }
  }
}

function* beginning(conversation: Conversation): Generator<Step, void, Buffer> {
  const screen = yield { read: 24 };
  // A viewer that has not waited for it has told its own already.
  conversation.pixels ??= readPixels(screen.subarray(4, 20));
  yield { pass: screen.readUInt32BE(20) };
}

function* update({ pixels }: Conversation): Generator<Step, void, Buffer> {
  if (pixels === undefined) throw new Unreadable('a picture out of turn');
  const count = (yield { read: 3 }).readUInt16BE(1);
  yield { pass: 0 };
  for (let done = 0; count === uncounted || done < count; done += 1) {
    const header = yield { read: 12 };
    const encoding = header.readInt32BE(8);
    const rectangle = { width: header.readUInt16BE(4), height: header.readUInt16BE(6) };
    yield* rectangleBody(encoding, rectangle, pixels);
    if (encoding === lastRectangle) return;
  }
}
