/** Clears away what a pool has left whose making was cut off before Incus had noted it. */
import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineError } from '../engine.ts';
import type { Place } from './place.ts';
import { run } from './run.ts';

/**
 * Incus makes no pool where its folder is already. Only empty folders go, mounted or not: disks that this
 * Incus does not know of are somebody's, and how they came there is for the operator to find out.
 */
export async function clearCutOffPool({ alias, pool }: Place): Promise<void> {
  const folder = join(alias, 'storage-pools', pool);
  if (!(await requireEmpty(folder))) return;
  // Not mounted is as good.
  await run('umount', [folder]).catch(() => {});
  await requireEmpty(folder);
  for (const name of await readdir(folder)) await rmdir(join(folder, name));
  await rmdir(folder);
}

/** False when it is not there at all. */
async function requireEmpty(folder: string): Promise<boolean> {
  const kinds = await readdir(folder).catch(() => undefined);
  for (const kind of kinds ?? []) {
    const disks = await readdir(join(folder, kind));
    if (disks.length === 0) continue;
    throw new EngineError(
      'failed',
      `${join(folder, kind)} has disks that Incus does not know of: move them away, or bring back the database they belong to.`,
    );
  }
  return kinds !== undefined;
}
