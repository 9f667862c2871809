// Finds and kills what a command left running, where no cgroup does it: by session, by descent, and by
// the marker in the environment, which also daemons inherit that left both.

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { markerName } from './command-line.ts';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
}

/** What forks while being killed is met in the next round; nothing honest needs as many. */
const mostRounds = 50;
/** A killed process takes a moment to be gone. */
const roundMs = 2;

/** `leader`: the command's own process while nobody has waited for it, so that its number is its own. */
export async function killTree(marker: string, leader: () => number | undefined): Promise<void> {
  for (let round = 0; round < mostRounds; round += 1) {
    const found = treeOf(marker, leader(), processes());
    if (found.length === 0) return;
    for (const pid of found) kill(pid);
    await setTimeout(roundMs);
  }
}

function treeOf(marker: string, leader: number | undefined, all: readonly Process[]): number[] {
  const tree = new Set<number>();
  for (const { pid, session } of all) {
    if (session === leader || carries(pid, marker)) tree.add(pid);
  }
  for (let before = -1; before < tree.size;) {
    before = tree.size;
    for (const { pid, parent } of all) if (tree.has(parent)) tree.add(pid);
  }
  tree.delete(process.pid);
  return [...tree];
}

/** A zombie has no environment, and is none of ours to kill. */
function carries(pid: number, marker: string): boolean {
  try {
    const environ = readFileSync(`/proc/${pid}/environ`, 'latin1');
    return `\0${environ}`.includes(`\0${markerName}=${marker}\0`);
  } catch {
    return false;
  }
}

function processes(): Process[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      // The command's name may hold anything but ends at the last parenthesis.
      const [state, parent, , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (state === 'Z') return [];
      return [{ pid: Number(name), parent: Number(parent), session: Number(session) }];
    } catch {
      return [];
    }
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}
