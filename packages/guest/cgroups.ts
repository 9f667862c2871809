// A cgroup per background command, where the guest has a version 2 hierarchy that the agent may divide:
// it is left by no process, however it forks, and is killed in one stroke.

import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CommandGroup {
  /** Written to by whoever enters. */
  readonly procs: string;
  kill(): void;
  /** Gone, unless processes are still in it. */
  remove(): boolean;
}

const prefix = 'cubicle-';

export class Cgroups {
  /** Our own group, under which the others are made; nothing where there is none to divide. */
  readonly #home: string | undefined;
  /** Outlived by a process of their command; tried again whenever another ends. */
  #lingering: CommandGroup[] = [];

  constructor(home: string | undefined) {
    this.#home = home;
    if (home !== undefined) sweep(home);
  }

  make(name: string): CommandGroup | undefined {
    if (this.#home === undefined) return undefined;
    const folder = join(this.#home, prefix + name);
    try {
      mkdirSync(folder);
      return groupAt(folder);
    } catch {
      return undefined;
    }
  }

  dispose(group: CommandGroup): void {
    this.#lingering = [...this.#lingering, group].filter((each) => !each.remove());
  }
}

function groupAt(folder: string): CommandGroup {
  return {
    procs: join(folder, 'cgroup.procs'),
    kill() {
      try {
        writeFileSync(join(folder, 'cgroup.kill'), '1');
      } catch {
        // Kernels before 5.14 have no such file.
      }
    },
    remove() {
      try {
        rmdirSync(folder);
        return true;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'ENOENT';
      }
    },
  };
}

/** The unified hierarchy is mounted alone, or beside those of version 1. */
export function ownGroup(): string | undefined {
  try {
    const mount = /^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(
      readFileSync('/proc/self/mountinfo', 'utf8'),
    );
    const own = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'));
    if (mount?.[2] === undefined || own?.[1] === undefined) return undefined;
    return join(mount[2], own[1]);
  } catch {
    return undefined;
  }
}

/** Empty groups that an earlier agent left. */
function sweep(home: string): void {
  try {
    for (const name of readdirSync(home)) {
      if (name.startsWith(prefix)) groupAt(join(home, name)).remove();
    }
  } catch {
    // Nothing can be left where nothing can be read.
  }
}
