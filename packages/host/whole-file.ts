// A file that whoever reads it finds whole, whenever they look: written beside its place and moved there.

import { chmod, rename, writeFile } from 'node:fs/promises';

export async function writeWhole(path: string, content: string, mode: number): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, content, { mode });
  // Said apart from the making, which the umask has a word in.
  await chmod(draft, mode);
  await rename(draft, path);
}
