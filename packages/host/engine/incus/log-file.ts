/** Keeps a child's log within bounds: one file that it appends to, and one older beside it. */
import { closeSync, openSync } from 'node:fs';
import { copyFile, open, stat, truncate } from 'node:fs/promises';

const largestBytes = 10 * 1024 * 1024;

/** A descriptor to append to; whoever writes there keeps writing to the start after a trim. */
export function openLog(file: string): { fd: number; close: () => void } {
  const fd = openSync(file, 'a', 0o600);
  return { fd, close: () => closeSync(fd) };
}

export async function trimLog(file: string): Promise<void> {
  if ((await sizeOf(file)) <= largestBytes) return;
  // Copied and cut rather than renamed: the writer keeps its file open.
  await copyFile(file, `${file}.1`);
  await truncate(file, 0);
}

export async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => undefined))?.size ?? 0;
}

/** What was written since the file had that size, or its last lines. */
export async function readFrom(file: string, start: number): Promise<string> {
  const handle = await open(file, 'r').catch(() => undefined);
  if (handle === undefined) return '';
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
