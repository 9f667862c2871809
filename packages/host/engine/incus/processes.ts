/** Finds the processes that belong to one place: its daemon, the containers' monitors, its dnsmasq. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Place } from './place.ts';

const pollMs = 25;
export const killMs = 5_000;

interface Process {
  readonly pid: number;
  readonly argv: readonly string[];
}

/** The daemon itself; it starts itself again under other names for single tasks. */
export async function findDaemon(place: Place): Promise<number | undefined> {
  for (const { pid, argv } of await processes()) {
    if (!isDaemon(argv)) continue;
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    if (environment.split('\0').includes(`INCUS_DIR=${place.alias}`)) return pid;
  }
  return undefined;
}

/** Whoever's it is. */
export async function anyDaemon(): Promise<boolean> {
  return (await processes()).some(({ argv }) => isDaemon(argv));
}

function isDaemon([file = '', first = '--']: readonly string[]): boolean {
  return /(^|\/)incusd$/.test(file) && first.startsWith('-');
}

/** The monitors of running containers by the container's name; each is the parent of its PID 1. */
export async function findMonitors(place: Place): Promise<Map<string, number>> {
  const mark = `[lxc monitor] ${place.alias}/containers `;
  const found = new Map<string, number>();
  for (const { pid, argv } of await processes()) {
    const title = argv.join(' ').trim();
    if (title.startsWith(mark)) found.set(title.slice(mark.length), pid);
  }
  return found;
}

/** The bridge's dnsmasq. One that its daemon had no time to note keeps the next one from starting. */
export async function endNameServers(place: Place): Promise<void> {
  await kill(await findByArgument(`--interface=${place.bridge}`));
}

/** Whatever else names the place in its arguments: single tasks of the daemon. */
export async function endHelpers(place: Place): Promise<void> {
  await kill(await findByArgument(`${place.alias}/`));
}

async function kill(pids: readonly number[]): Promise<void> {
  for (const pid of pids) await endProcess(pid, [['SIGKILL', killMs]]);
}

async function findByArgument(start: string): Promise<number[]> {
  const found = (await processes()).filter(({ argv }) => argv.some((one) => one.startsWith(start)));
  return found.map(({ pid }) => pid);
}

export async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

/**
 * When a process began, which with its pid names it for good: pids are used again. Undefined for one that
 * has ended, also if its parent has not noticed yet.
 */
export async function birthOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may hold anything; what follows is counted from its end.
  const [state, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return text === '' || state === 'Z' || state === 'X' ? undefined : fields[18];
}

/** Returns whether it is gone in time. */
export async function waitForEnd(pid: number, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  const birth = await birthOf(pid);
  while (birth !== undefined && (await birthOf(pid)) === birth) {
    if (performance.now() > deadline) return false;
    await pause(pollMs);
  }
  return true;
}

/** Sends the signals in turn until the process is gone; the last one leaves it no choice. */
export async function endProcess(
  pid: number,
  steps: readonly (readonly [NodeJS.Signals, number])[],
): Promise<void> {
  for (const [signal, waitMs] of steps) {
    try {
      process.kill(pid, signal);
    } catch {
      return; // It ended meanwhile.
    }
    if (await waitForEnd(pid, waitMs)) return;
  }
}

/** Of our own pid namespace only: a guest can give its processes whatever names it likes. */
async function processes(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const here = await readlink('/proc/self/ns/pid');
  const found = pids.map(async (pid) => {
    const [text, there] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
      readlink(`/proc/${pid}/ns/pid`).catch(() => ''),
    ]);
    return { pid, argv: there === here ? text.split('\0').filter(Boolean) : [] };
  });
  return (await Promise.all(found)).filter(({ argv }) => argv.length > 0);
}
