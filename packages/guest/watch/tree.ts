// One watched tree: a watch on every directory in it, those that appear later included. What is a link is
// told of and not followed. A tree that is not there is looked for until it is.

import { lstatSync, type Stats } from 'node:fs';
import type { FileChange, WatchNews } from '@cubicle/contract/guest/messages.ts';
import { errorCode } from '../refused.ts';
import { Directory, type Found, numberOf } from './directory.ts';
import type { Room } from './room.ts';

export interface TreeEars {
  changed(path: string, kind: FileChange['kind'], dir: boolean): void;
  flooded(): void;
  tell(news: WatchNews): void;
}

/** A path too long to tell is left out. */
const longestPath = 4_096;
/** How often the tree's own place is looked at: a folder above it may be renamed without a word. */
const lookMs = 500;
/** Directories entered before others have their turn. */
const atOnce = 32;
/** No room for another watch: the user's, the kernel's, or ours. */
const noRoom = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']);

interface Entering {
  readonly parent: Directory;
  readonly name: string;
  /** Whether what is in it is news. */
  readonly announce: boolean;
}

export class Tree {
  readonly #path: string;
  readonly #ears: TreeEars;
  readonly #room: Room;
  #root: Directory | undefined;
  #identity = '';
  #armed = false;
  #missed = false;
  #watched = 0;
  #queue: Entering[] = [];
  #entering: NodeJS.Immediate | undefined;
  readonly #looking: NodeJS.Timeout;
  /** Called first for each news of the kernel's, with the tree still as it was. */
  readonly #heard: () => void;

  constructor(path: string, ears: TreeEars, room: Room, heard: () => void) {
    this.#path = path;
    this.#ears = ears;
    this.#room = room;
    this.#heard = heard;
    this.#looking = setInterval(() => this.#look(), lookMs);
    this.#look();
  }

  close(): void {
    clearInterval(this.#looking);
    this.#letGo();
  }

  /** The kernel lost some of its news: everything is watched anew. */
  overflowed(): void {
    if (this.#root === undefined) return;
    this.#letGo();
    this.#ears.flooded();
    this.#look();
  }

  #look(): void {
    if (this.#root !== undefined) {
      if (identityOf(this.#path) === this.#identity) return;
      this.#letGo();
    }
    this.#identity = identityOf(this.#path) ?? '';
    const root = this.#enter(this.#path, undefined, false);
    if (root === 'no room') return;
    if (root !== undefined) {
      this.#root = root;
      this.#missed = false;
      this.#enterLater();
    } else if (!this.#missed) {
      this.#missed = true;
      this.#ears.tell({ lost: 'unwatchable' });
    }
  }

  #letGo(): void {
    this.#leave(this.#root);
    this.#root = undefined;
    this.#armed = false;
    this.#queue = [];
    clearImmediate(this.#entering);
    this.#entering = undefined;
  }

  #leave(directory: Directory | undefined): void {
    const closed = directory?.close() ?? 0;
    this.#watched -= closed;
    for (let i = 0; i < closed; i += 1) this.#room.give();
  }

  /** Watches one directory; those in it wait for their turn. Nothing when it is gone or is none. */
  #enter(
    path: string,
    parent: Directory | undefined,
    announce: boolean,
  ): Directory | 'no room' | undefined {
    if (!this.#room.take(this.#watched)) return this.#giveUp();
    let opened: { directory: Directory; entries: Found[] };
    try {
      opened = Directory.open(path, parent, (...news) => this.#hear(...news));
    } catch (error) {
      this.#room.give();
      return noRoom.has(errorCode(error) ?? '') ? this.#giveUp() : undefined;
    }
    this.#watched += 1;
    const { directory, entries } = opened;
    for (const { name, dir } of entries) {
      if (announce) this.#tell(`${path}/${name}`, 'created', dir);
      if (dir) this.#queue.push({ parent: directory, name, announce });
    }
    return directory;
  }

  /** For good: a narrower tree may be watched instead. */
  #giveUp(): 'no room' {
    this.close();
    this.#ears.tell({ lost: 'budget' });
    return 'no room';
  }

  #enterLater(): void {
    this.#entering ??= setImmediate(() => {
      this.#entering = undefined;
      for (const { parent, name, announce } of this.#queue.splice(0, atOnce)) {
        if (parent.closed || parent.children.has(name)) continue;
        if (this.#enterChild(parent, name, announce) === 'no room') return;
      }
      if (this.#queue.length > 0) this.#enterLater();
      else this.#arm();
    });
  }

  #enterChild(parent: Directory, name: string, announce: boolean): 'no room' | undefined {
    const child = this.#enter(`${parent.path}/${name}`, parent, announce);
    if (child === 'no room') return child;
    if (child !== undefined) parent.children.set(name, child);
    return undefined;
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#ears.tell({ armed: true });
  }

  #hear(directory: Directory, type: 'rename' | 'change', name: string): void {
    this.#heard();
    if (directory.closed) return;
    if (type === 'change') this.#changed(directory, name);
    else this.#cameOrWent(directory, name);
  }

  #changed(directory: Directory, name: string): void {
    const path = `${directory.path}/${name}`;
    if (name === directory.self && found(path) === undefined) return;
    this.#tell(path, 'modified', directory.children.has(name));
  }

  /** What is there now decides; if that is not its end, more news of it are on their way. */
  #cameOrWent(directory: Directory, name: string): void {
    const path = `${directory.path}/${name}`;
    const before = directory.children.get(name);
    const now = found(path);
    // Node tells a change of a directory's mode as if it had come or gone.
    const replaced = before !== undefined && (now === undefined || numberOf(now) !== before.number);
    if (before !== undefined && !replaced) return this.#tell(path, 'modified', true);
    this.#leave(before);
    const isSelf = name === directory.self;
    if (isSelf && directory === this.#root) this.#look();
    if (directory.closed) return;
    if ((replaced || now === undefined) && (!isSelf || directory.twin)) {
      this.#tell(path, 'deleted', replaced);
    }
    if (now !== undefined) this.#tell(path, 'created', now.isDirectory());
    if (isSelf) directory.twin = now !== undefined;
    if (now?.isDirectory() !== true) return;
    this.#enterChild(directory, name, true);
    if (this.#queue.length > 0) this.#enterLater();
  }

  /** Nothing is said of what happens before the tree is armed. */
  #tell(path: string, kind: FileChange['kind'], dir: boolean): void {
    if (this.#armed && Buffer.byteLength(path) <= longestPath) this.#ears.changed(path, kind, dir);
  }
}

function found(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A folder above it is gone, or is none any more.
    return undefined;
  }
}

function identityOf(path: string): string | undefined {
  const now = found(path);
  return now?.isDirectory() === true ? numberOf(now) : undefined;
}
