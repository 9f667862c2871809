/** Owns the names that one data folder's Incus has on the machine, and the short way to its folder. */
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './run.ts';

const proofName = 'cubicle-proof';

export interface Place {
  /** Where everything is kept: `<data>/incus`. */
  readonly folder: string;
  /**
   * INCUS_DIR: the same folder under a short path that everybody can pass. A guest's root is nobody on
   * the host and must reach its disk, which a data folder below a 0700 folder (/root, mktemp -d) does
   * not allow; and a unix socket's path may have 107 bytes at most.
   */
  readonly alias: string;
  readonly socket: string;
  readonly log: string;
  readonly pool: string;
  /** Interface names have 15 characters at most. */
  readonly bridge: string;
  /** What the names of the guests' interfaces on the host begin with. */
  readonly links: string;
  /** The table of our own firewall rules. */
  readonly table: string;
  /** Held by the process that owns the folder. */
  readonly lock: string;
  /** What is drawn from the data folder's path differs between two services on one machine. */
  readonly digest: string;
}

/** The data folder is made if it is missing. Its path is part of the names: it cannot move later. */
export async function placeOf(dataDir: string): Promise<Place> {
  await mkdir(join(dataDir, 'incus'), { recursive: true });
  const folder = join(await realpath(dataDir), 'incus');
  const digest = createHash('sha256').update(folder).digest('hex');
  const alias = `/run/cubicle-${digest.slice(0, 12)}`;
  return {
    folder,
    alias,
    socket: join(alias, 'unix.socket'),
    log: join(folder, '..', 'incus.log'),
    pool: 'cubicle',
    bridge: `cub${digest.slice(0, 10)}`,
    links: `cu${digest.slice(0, 5)}`,
    table: `cubicle_${digest.slice(0, 12)}`,
    // The leading zero makes the name an abstract one, which ends with its process.
    lock: `\0cubicle-engine-${digest.slice(0, 12)}`,
    digest,
  };
}

/** A name for a guest's interface on the host by which it can be found when nobody remembers it. */
export function linkName(place: Place, id: string): string {
  return place.links + createHash('sha256').update(id).digest('hex').slice(0, 8);
}

async function aliasLeadsHere(place: Place): Promise<boolean> {
  const [there, here] = await Promise.all([
    stat(place.alias).catch(() => undefined),
    stat(place.folder).catch(() => undefined),
  ]);
  return there !== undefined && there.ino === here?.ino && there.dev === here.dev;
}

/**
 * Whether the folder holds nothing worth keeping and yet is not empty: Incus killed in its very first
 * start leaves a database that it refuses ever after, and `rm -r` of a folder in use leaves mount points.
 * Disks are made only after the proof that Incus was ready.
 */
export async function isWreck(place: Place): Promise<boolean> {
  const inside = (path: string) => readdir(join(place.folder, path)).catch((): string[] => []);
  const found = await inside('.');
  if (found.length === 0 || found.includes(proofName)) return false;
  const disks = [...(await inside('disks')), ...(await inside(`storage-pools/${place.pool}`))];
  return disks.length === 0;
}

export async function markProven(place: Place): Promise<void> {
  await writeFile(join(place.folder, proofName), '');
}

/** Whether the alias is taken by a folder that was here before and has been moved or deleted. */
export async function isUsurped(place: Place): Promise<boolean> {
  if (await aliasLeadsHere(place)) return false;
  return (await readdir(place.alias).catch((): string[] => [])).length > 0;
}

export async function mountAlias(place: Place): Promise<void> {
  if (await aliasLeadsHere(place)) return;
  await mkdir(place.folder, { recursive: true });
  // Incus makes it so as well; said here for the time before its first start.
  await chmod(place.folder, 0o711);
  await mkdir(place.alias, { recursive: true, mode: 0o711 });
  // Private: the pool's mount below it must not show up a second time below the data folder.
  await run('mount', ['--bind', '--make-private', place.folder, place.alias]);
}
