/** Owns the folder of the server's unix socket, which only root and the server's user can enter. */
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from './error-code.ts';
import type { Identity } from './unprivileged.ts';

export const socketPort = 5432;
export const socketName = `.s.PGSQL.${socketPort}`;

// The kernel's limit is 107 bytes on Linux and 103 on macOS.
const longestSocketPath = 100;

export interface SocketFolder {
  readonly path: string;
  /** Outside the data folder, because the data folder's path is too long for a socket. */
  readonly temporary: boolean;
}

export function placeSocketFolder(dataDir: string): SocketFolder {
  const path = join(dataDir, 'postgres-socket');
  if (Buffer.byteLength(join(path, socketName)) <= longestSocketPath) {
    return { path, temporary: false };
  }
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  return { path: join(tmpdir(), `cubicle-${digest}`), temporary: true };
}

/**
 * Makes the folder, or checks the one that is there. The check comes before every connect too:
 * in a shared /tmp anybody could put a server of their own at this path.
 */
export async function prepareSocketFolder(folder: SocketFolder, identity: Identity): Promise<void> {
  await mkdir(folder.path, { mode: 0o700 }).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
  const found = await lstat(folder.path);
  const ours = found.uid === identity.uid || (identity.switchUser && found.uid === 0);
  if (!found.isDirectory() || !ours) {
    throw new Error(
      `${folder.path} is not a folder of the database server's user (uid ${identity.uid}); remove it and start again.`,
    );
  }
  if (found.uid !== identity.uid) await chown(folder.path, identity.uid, identity.gid);
  if ((found.mode & 0o777) !== 0o700) await chmod(folder.path, 0o700);
}

/** Only an empty folder goes: another service may already be starting its server in it. */
export async function removeTemporarySocketFolder(folder: SocketFolder): Promise<void> {
  if (folder.temporary) await rmdir(folder.path).catch(() => {});
}
