// The beginning of RFB, said on both sides by the host (RFC 6143 sections 7.1 and 7.2). The VNC server counts
// whoever goes away before it, and after a few shuts out everybody: it only ever meets the host, which does not.

import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { Unreadable } from './sieve.ts';

/** Older ones agree on security in another way. */
const version = Buffer.from('RFB 003.008\n');
const noSecurity = 1;

/** As far as the server waits for ClientInit. Throws Unreadable for a server that is none. */
export async function greetServer(channel: Channel): Promise<void> {
  const read = reader(channel);
  if (!(await read(version.length)).equals(version)) throw new Unreadable('another version of RFB');
  await channel.send(0, version);
  const kinds = await read((await read(1)).readUInt8(0));
  if (!kinds.includes(noSecurity)) throw new Unreadable('the server wants a password');
  await channel.send(0, Buffer.from([noSecurity]));
  if ((await read(4)).readUInt32BE(0) !== 0) throw new Unreadable('the server refuses');
}

/** The server says nothing unasked until then, so nothing is left over. */
function reader(channel: Channel): (length: number) => Promise<Buffer> {
  let held = Buffer.alloc(0);
  return async (length) => {
    while (held.length < length) {
      const piece = await channel.receive();
      if (piece === undefined) throw new Unreadable('the server ended');
      held = Buffer.concat([held, piece.bytes]);
    }
    const taken = held.subarray(0, length);
    held = held.subarray(length);
    return taken;
  };
}

/** The server's part towards a viewer. */
export class ViewerGreeting {
  readonly #say: (bytes: Buffer) => void;
  #held = Buffer.alloc(0);
  #step: 'version' | 'security' | 'done' = 'version';

  constructor(say: (bytes: Buffer) => void) {
    this.#say = say;
    say(version);
  }

  /** What of these bytes comes after the greeting. Throws Unreadable. */
  take(chunk: Buffer): Buffer {
    if (this.#step === 'done') return chunk;
    this.#held = Buffer.concat([this.#held, chunk]);
    if (this.#step === 'version' && this.#held.length >= version.length) {
      if (!this.#taken(version.length).equals(version))
        throw new Unreadable('another version of RFB');
      this.#step = 'security';
      this.#say(Buffer.from([1, noSecurity]));
    }
    if (this.#step === 'security' && this.#held.length > 0) {
      if (this.#taken(1).readUInt8(0) !== noSecurity) throw new Unreadable('security of a kind');
      this.#step = 'done';
      this.#say(Buffer.alloc(4));
    }
    return this.#step === 'done' ? this.#taken(this.#held.length) : Buffer.alloc(0);
  }

  #taken(length: number): Buffer {
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return taken;
  }
}
