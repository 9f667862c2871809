// The trees that the host watches: each as long as the channel it asked for it on.

import { readFileSync } from 'node:fs';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { encodeMessage, type GuestRequest } from '@cubicle/contract/guest/messages.ts';
import { Outbox } from './outbox.ts';
import { Room } from './room.ts';
import { Tree } from './tree.ts';

export class Watches {
  readonly #room = new Room();
  readonly #trees = new Set<Tree>();
  readonly #suspicious = Math.ceil(mostQueued() / 4);
  #heard = 0;

  async watch(channel: Channel, { path }: Extract<GuestRequest, { op: 'watch' }>): Promise<void> {
    channel.accept(encodeMessage({}));
    const outbox = new Outbox((lines) => channel.send(0, lines).catch(() => false));
    const tree = new Tree(path, outbox, this.#room, () => this.#count());
    this.#trees.add(tree);
    await channel.until(() => channel.abandoned);
    this.#trees.delete(tree);
    tree.close();
    outbox.close();
  }

  /**
   * The kernel drops what does not fit its queue, and Node does not say so. But its queue is emptied whole
   * in one turn of the loop: only a turn with about as many news as it holds can have lost any. Some of
   * them are not passed on, those of directories let go meanwhile, so a part of them is enough.
   */
  #count(): void {
    if (this.#heard === 0) setImmediate(() => (this.#heard = 0));
    this.#heard += 1;
    if (this.#heard !== this.#suspicious) return;
    setImmediate(() => {
      for (const tree of this.#trees) tree.overflowed();
    });
  }
}

function mostQueued(): number {
  try {
    return Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
  } catch {
    return 16_384;
  }
}
