// Writes a file for the host: into a temporary one beside it, and then whole into its place.

import { constants, type Stats } from 'node:fs';
import { type FileHandle, link, lstat, open, realpath, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { encodeMessage, type GuestRequest } from '@cubicle/contract/guest/messages.ts';
import { findAccount, isRoot } from './accounts.ts';
import { errorCode, Refused } from './refused.ts';
import type { Uploads } from './uploads.ts';
import { randomName } from './random-name.ts';

type WriteRequest = Extract<GuestRequest, { op: 'write' }>;

export interface WriteOptions {
  readonly uploads: Uploads;
  readonly user: string;
  readonly home: string | undefined;
}

/** Where a file goes: its folder without links, its name there, and what is there now. */
interface Target {
  readonly folder: string;
  readonly name: string;
  readonly replaced: Stats | undefined;
}

export async function writeFile(
  channel: Channel,
  asked: WriteRequest,
  options: WriteOptions,
): Promise<void> {
  const target = await findTarget(asked.path, asked.create_only);
  // Held open, so that every step happens in this folder, whatever becomes of its name.
  const folder = await open(target.folder, constants.O_RDONLY | constants.O_DIRECTORY);
  const inFolder = `/proc/self/fd/${folder.fd}`;
  const temporary = `.cubicle-${randomName(8)}`;
  let done: (() => void) | undefined;
  let bytes: number;
  try {
    done = options.uploads.begin(join(target.folder, temporary));
    const file = await open(join(inFolder, temporary), 'wx', 0o600);
    try {
      bytes = await receive(channel, file, asked.most);
      await own(file, target, options);
      await file.sync();
    } finally {
      await file.close();
    }
    const place = join(inFolder, target.name);
    if (asked.create_only) await linkOnly(join(inFolder, temporary), place);
    else await rename(join(inFolder, temporary), place);
  } catch (error) {
    // The folder is there: it is one of the kernel's, or was removed meanwhile.
    if (errorCode(error) === 'ENOENT') throw new Refused('denied', { detail: 'ENOENT' });
    throw error;
  } finally {
    await unlink(join(inFolder, temporary)).catch(() => {});
    done?.();
    await folder.close();
  }
  // Last: whoever hears of it finds nothing beside the file.
  channel.accept(encodeMessage({ bytes }));
  channel.end();
}

async function findTarget(path: string, createOnly: boolean, links = 0): Promise<Target> {
  const name = basename(path);
  if (path.endsWith('/') || name === '.' || name === '..') throw new Refused('not_a_file');
  const folder = await realpath(dirname(path)).catch((error: unknown) => {
    const code = errorCode(error);
    if (code === 'ENOENT') throw new Refused('absent_directory');
    if (code === 'ENOTDIR') throw new Refused('not_a_directory');
    throw error;
  });
  const replaced = await lstat(join(folder, name)).catch((error: unknown) => {
    const code = errorCode(error);
    if (code === 'ENOENT') return undefined;
    if (code === 'ENOTDIR') throw new Refused('not_a_directory');
    throw error;
  });
  if (replaced !== undefined && createOnly) throw new Refused('exists');
  if (replaced?.isSymbolicLink() === true) {
    // As an editor would, the file that the link leads to is replaced, and the link stays.
    const real = await realpath(join(folder, name)).catch(() => undefined);
    if (real === undefined || links > 0) throw new Refused('symlink');
    return findTarget(real, createOnly, links + 1);
  }
  if (replaced !== undefined && !replaced.isFile()) throw new Refused('not_a_file');
  return { folder, name, replaced };
}

async function receive(channel: Channel, file: FileHandle, most: number): Promise<number> {
  let bytes = 0;
  for (let piece = await channel.receive(); piece !== undefined; piece = await channel.receive()) {
    bytes += piece.bytes.length;
    if (bytes > most) throw new Refused('too_large');
    await writeWhole(file, piece.bytes);
    // Freed at once: the collector would let 64 MB of these gather.
    (piece.bytes.buffer as ArrayBuffer).transfer(0);
  }
  return bytes;
}

/** One write may take less than it was given. */
async function writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
  }
}

/** What is in the user's home is the user's. What is replaced keeps its mode, and elsewhere its owner. */
async function own(file: FileHandle, target: Target, { user, home }: WriteOptions): Promise<void> {
  const { folder, replaced } = target;
  const account = findAccount(user);
  const homeFolder = home ?? account?.home;
  if (isRoot && account !== undefined && `${folder}/`.startsWith(`${homeFolder}/`)) {
    await file.chown(account.uid, account.gid);
  } else if (isRoot && replaced !== undefined) {
    await file.chown(replaced.uid, replaced.gid);
  }
  await file.chmod(replaced === undefined ? 0o644 : replaced.mode & 0o777);
}

/** A link cannot take a place that is taken, and shows the whole file at once. */
async function linkOnly(temporary: string, place: string): Promise<void> {
  try {
    await link(temporary, place);
  } catch (error) {
    const code = errorCode(error);
    // Some file systems have no links.
    if (code === 'EPERM' || code === 'EOPNOTSUPP' || code === 'ENOSYS')
      throw new Refused('no_links');
    throw error;
  }
}
