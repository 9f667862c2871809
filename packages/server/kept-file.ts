// A file of the operator's: readable by its owner alone, and whole whenever it is looked at, even after the
// machine lost its power. It is written beside its place and moved there.

import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Takes the place of what is there. */
export async function replaceKept(path: string, text: string): Promise<void> {
  await viaDraft(path, text, (draft) => rename(draft, path));
}

/** Takes the place only where nothing is: several processes may try at once, and one of them does it. */
export async function placeKept(path: string, text: string): Promise<void> {
  await viaDraft(path, text, (draft) =>
    link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    }),
  );
}

/** Clears away what a writer that was killed has left. */
export async function sweepDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  const start = `${basename(path)}.`;
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith(start)) continue;
    const writer = /^(\d+)\.[0-9a-f]+\.draft$/.exec(name.slice(start.length))?.[1];
    if (writer !== undefined && !isAlive(Number(writer))) {
      await rm(join(folder, name), { force: true });
    }
  }
}

async function viaDraft(
  path: string,
  text: string,
  settle: (draft: string) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.draft`;
  try {
    await synced(draft, 'wx', async (file) => {
      await file.chmod(0o600);
      await file.writeFile(text);
    });
    await settle(draft);
    await synced(dirname(path), 'r');
  } finally {
    await rm(draft, { force: true });
  }
}

type Opened = Awaited<ReturnType<typeof open>>;

async function synced(
  path: string,
  flags: string,
  work?: (file: Opened) => Promise<void>,
): Promise<void> {
  const file = await open(path, flags, 0o600);
  try {
    await work?.(file);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A process of someone else's is one too. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
