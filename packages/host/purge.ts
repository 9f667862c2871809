// Takes a host off this machine: its computers, images, mounts, loop devices, bridge and rules.

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from './engine/engine.ts';
import { readEndpoint } from './engine/incus/endpoint.ts';
import { openIncus } from './engine/incus/open.ts';
import { takeOwnerLock } from './engine/incus/owner-lock.ts';
import { placeOf } from './engine/incus/place.ts';
import { erase } from './engine/incus/sweep.ts';

/** Returns the host's id, if there was one. */
export async function purgeHost(
  dataDir: string,
  say: (line: string) => void,
): Promise<string | undefined> {
  const folder = join(dataDir, 'host');
  const id = await readFile(join(folder, 'id'), 'utf8').catch(() => '');
  const endpoint = readEndpoint(process.env);
  if (endpoint === undefined) await eraseOwn(dataDir);
  else {
    const { signal } = new AbortController();
    const opened = await openIncus({ signal }, { dataDir, say, endpoint });
    try {
      await deleteAll(opened.engine, signal);
    } finally {
      await opened.stop({ keepComputers: true });
    }
  }
  await rm(folder, { recursive: true, force: true });
  return id.trim() === '' ? undefined : id.trim();
}

/** Needs no Incus that answers. */
async function eraseOwn(dataDir: string): Promise<void> {
  const place = await placeOf(dataDir);
  const lock = await takeOwnerLock(place, 0).catch((cause: unknown) => {
    throw new Error('The service is running on this data folder; stop it first.', { cause });
  });
  try {
    await erase(place);
  } finally {
    await lock.release();
  }
}

/** In an Incus of the operator's only what is ours is touched. */
async function deleteAll(engine: Engine, signal: AbortSignal): Promise<void> {
  for (const { id } of await engine.list({ signal })) await engine.delete({ signal }, id);
}
