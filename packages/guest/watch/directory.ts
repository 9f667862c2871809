// One watched directory. It is opened first and then watched by what was opened: a link put in its place
// meanwhile leads nowhere.

import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  type Dirent,
  type FSWatcher,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Stats,
  watch,
} from 'node:fs';
import { basename } from 'node:path';
import { listedName } from '@cubicle/contract/guest/messages.ts';

export interface Found {
  readonly name: string;
  readonly dir: boolean;
}

export type Heard = (directory: Directory, type: 'rename' | 'change', name: string) => void;

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Longer than the clock that tells births may stand still. */
const youngMs = 100;

export class Directory {
  readonly path: string;
  readonly parent: Directory | undefined;
  readonly children = new Map<string, Directory>();
  readonly number: string;
  /** By this name the kernel's news about the directory itself come, as if of something in it. */
  readonly self: string;
  /** There is something in it that has that name. */
  twin: boolean;
  readonly #watcher: FSWatcher;
  /** Open while it is young: nothing else gets its inode's number then, and what gets it later is born later. */
  #fd: number | undefined;
  #closed = false;

  private constructor(
    about: Pick<Directory, 'path' | 'parent' | 'number' | 'self' | 'twin'>,
    watcher: FSWatcher,
    fd: number,
  ) {
    this.path = about.path;
    this.parent = about.parent;
    this.number = about.number;
    this.self = about.self;
    this.twin = about.twin;
    this.#watcher = watcher;
    this.#fd = fd;
  }

  /** Watched from here on, and what was in it. Throws what the kernel says; ELOOP when a link leads there. */
  static open(path: string, parent: Directory | undefined, heard: Heard) {
    const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
    try {
      const opened = `/proc/self/fd/${fd}`;
      if (readlinkSync(opened) !== path)
        throw Object.assign(new Error('a link'), { code: 'ELOOP' });
      const watcher = watch(opened, { encoding: 'buffer' }, (type, name) => {
        // Names that JSON or a person cannot read are not told of.
        if (name !== null && isUtf8(name) && listedName(name.toString())) {
          heard(directory, type, name.toString());
        }
      });
      watcher.on('error', () => {});
      const entries = told(readdirOf(opened, watcher));
      const self = basename(opened);
      const twin = entries.some(({ name }) => name === self);
      const stats = fstatSync(fd);
      const number = numberOf(stats);
      const directory = new Directory({ path, parent, number, self, twin }, watcher, fd);
      const young = Math.abs(Date.now() - stats.birthtimeMs) < youngMs;
      if (young) setTimeout(() => directory.#release(), youngMs).unref();
      else directory.#release();
      return { directory, entries };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** With all below it. Answers how many that were. */
  close(): number {
    if (this.#closed) return 0;
    this.#closed = true;
    this.#release();
    this.#watcher.close();
    this.parent?.children.delete(basename(this.path));
    let closed = 1;
    for (const child of this.children.values()) closed += child.close();
    return closed;
  }

  #release(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** No two directories that were opened here have the same. */
export function numberOf({ dev, ino, birthtimeMs }: Stats): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

function readdirOf(path: string, watcher: FSWatcher): Dirent<Buffer>[] {
  try {
    return readdirSync(path, { encoding: 'buffer', withFileTypes: true });
  } catch (error) {
    watcher.close();
    throw error;
  }
}

function told(entries: Dirent<Buffer>[]): Found[] {
  return entries
    .filter(({ name }) => isUtf8(name) && listedName(name.toString()))
    .map((entry) => ({ name: entry.name.toString(), dir: entry.isDirectory() }));
}
