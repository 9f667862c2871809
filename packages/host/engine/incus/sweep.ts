/** Takes away everything that a place's Incus has put on the machine outside its folder. */
import { readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { removeFirewall, removeStaleChains, removeStaleProbes } from './firewall.ts';
import { thawLeftover } from './freezer.ts';
import type { Place } from './place.ts';
import {
  childrenOf,
  endHelpers,
  endNameServers,
  endProcess,
  findDaemon,
  findMonitors,
  killMs,
  waitForEnd,
} from './processes.ts';
import { run } from './run.ts';

/** A monitor whose container has died needs 2.2 s to clear up when no daemon answers it, or never ends. */
const monitorMs = 5_000;
/** The kernel lets go of a loop device a moment after its last mount. */
const unmountTries = 40;
const unmountPauseMs = 50;

/** May be repeated, and needs nothing that answers. Whatever still runs is ended by force. */
export async function sweep(place: Place): Promise<void> {
  await endEverything(place);
  await removeLinks(place);
  await removeFirewall(place);
  await unmountEverything(place);
  await removeStaleChains(place);
  await removeStaleProbes();
}

/** Ends the place for good: nothing of its computers and images is left. */
export async function erase(place: Place): Promise<void> {
  await sweep(place);
  await rm(place.folder, { recursive: true, force: true });
  await rm(place.log, { force: true });
  await rm(`${place.log}.1`, { force: true });
}

async function endEverything(place: Place): Promise<void> {
  const daemon = await findDaemon(place);
  if (daemon !== undefined) await endProcess(daemon, [['SIGKILL', killMs]]);
  // First, since one of them may be starting a guest, whose monitor would come too late to be found.
  await endNameServers(place);
  await endHelpers(place);
  const monitors = await findMonitors(place);
  await Promise.all(
    [...monitors].map(async ([name, monitor]) => {
      // The monitor removes its container's cgroups when the container's first process dies.
      for (const pid of await childrenOf(monitor)) {
        // What is frozen does not even die.
        await thawLeftover(pid);
        await endProcess(pid, [['SIGKILL', killMs]]);
      }
      if (await waitForEnd(monitor, monitorMs)) return;
      await endProcess(monitor, [['SIGKILL', killMs]]);
      await removeGroups(name);
    }),
  );
  await endNameServers(place);
  await endHelpers(place);
}

/** Empty ones only; a hierarchy that is not there has none. */
async function removeGroups(name: string): Promise<void> {
  const root = '/sys/fs/cgroup';
  const hierarchies = ['', ...(await readdir(root).catch(() => []))];
  for (const hierarchy of hierarchies) {
    for (const kind of ['payload', 'monitor']) {
      await rmdir(join(root, hierarchy, `lxc.${kind}.${name}`)).catch(() => {});
    }
  }
}

/** Guests' interfaces first: those of a guest that died without its daemon stay behind in pairs. */
async function removeLinks(place: Place): Promise<void> {
  const names = await readdir('/sys/class/net');
  const links = names.filter((name) => name.startsWith(place.links));
  for (const name of [...links, ...names.filter((found) => found === place.bridge)]) {
    await run('ip', ['link', 'delete', name]).catch(() => {});
  }
}

async function unmountEverything(place: Place): Promise<void> {
  const loops = await loopsOf(place);
  for (let tries = 1; ; tries += 1) {
    const mounted = await mountsBelow(place.alias);
    if (mounted.length === 0) break;
    // The last resort: it is gone from everybody's sight, and from the kernel when its last user ends.
    const lazy = tries >= unmountTries ? ['-l'] : [];
    for (const point of mounted) await run('umount', [...lazy, point]).catch(() => {});
    if (tries > unmountTries) throw new Error(`${mounted.join(', ')} cannot be unmounted`);
    if (tries > 1) await pause(unmountPauseMs);
  }
  await rmdir(place.alias).catch(() => {});
  // Most went with their mount. One whose Incus was killed before it mounted it has none to go with.
  const left = new Set((await listLoops()).map(nameOfLoop));
  for (const loop of loops) {
    if (left.has(nameOfLoop(loop))) await run('losetup', ['--detach', loop.device]).catch(() => {});
  }
}

/** Innermost first. */
async function mountsBelow(folder: string): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  return text
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      ),
    )
    .filter((point) => point === folder || point.startsWith(`${folder}/`))
    .toReversed();
}

interface Loop {
  readonly device: string;
  readonly inode: string;
  readonly file: string;
}

/** A device is used again for other files. */
const nameOfLoop = ({ device, inode }: Loop): string => `${device} ${inode}`;

/** By name as long as the alias is mounted; by inode when it was unmounted under them. */
async function loopsOf(place: Place): Promise<Loop[]> {
  const folders = [join(place.folder, 'disks'), join(place.alias, 'disks')];
  const images = await readdir(folders[0] ?? '').catch((): string[] => []);
  const found = await Promise.all(
    images.map((name) => stat(join(place.folder, 'disks', name)).catch(() => undefined)),
  );
  const inodes = new Set(found.map((image) => `${image?.ino}`));
  return (await listLoops()).filter(
    ({ inode, file }) =>
      folders.some((folder) => file.startsWith(`${folder}/`)) ||
      (inodes.has(inode) && images.some((name) => file.includes(`disks/${name}`))),
  );
}

async function listLoops(): Promise<Loop[]> {
  const columns = ['--noheadings', '--raw', '--output', 'NAME,BACK-INO,BACK-FILE'];
  const lines = (await run('losetup', ['--list', ...columns])).trim().split('\n');
  return lines.map((line) => {
    const [device = '', inode = '', ...file] = line.split(' ');
    return { device, inode, file: file.join(' ') };
  });
}
