// Lists a directory for the host: bounded, links not followed.

import { isUtf8 } from 'node:buffer';
import { constants, type Dirent } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  encodeMessage,
  type GuestRequest,
  listedName,
  type Listing,
} from '@cubicle/contract/guest/messages.ts';
import { counts, sizes } from '@cubicle/contract/guest/sizes.ts';
import { Refused } from './refused.ts';

type Entry = Listing['entries'][number];

export async function listFiles(
  channel: Channel,
  { path }: Extract<GuestRequest, { op: 'list' }>,
): Promise<void> {
  // A slash at the end would follow the link that the name is.
  const named = path.replace(/(?<=.)\/+$/, '');
  const found = await lstat(named);
  if (found.isSymbolicLink()) throw new Refused('symlink');
  if (!found.isDirectory()) throw new Refused('not_a_directory');
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const folder = await open(named, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    const listing = encodeMessage(await list(`/proc/self/fd/${folder.fd}`));
    channel.accept(encodeMessage({ bytes: listing.length }));
    if (await channel.send(0, listing)) channel.end();
  } finally {
    await folder.close();
  }
}

async function list(folder: string): Promise<Listing> {
  const found: Dirent<Buffer>[] = [];
  // @types/node knows names as bytes for readdir only.
  const directory = await opendir(folder, { encoding: 'buffer' as BufferEncoding });
  for await (const each of directory as unknown as AsyncIterable<Dirent<Buffer>>) {
    found.push(each);
    if (found.length > counts.listed) break;
  }
  let truncated = found.length > counts.listed;
  const examined = found.slice(0, counts.listed);
  const told = examined.filter(({ name }) => isUtf8(name) && listedName(name.toString()));
  const entries: Entry[] = [];
  let bytes = 0;
  for (const entry of await Promise.all(told.map((each) => describe(folder, each)))) {
    bytes += Buffer.byteLength(JSON.stringify(entry)) + 1;
    if (bytes > sizes.listing) {
      truncated = true;
      break;
    }
    entries.push(entry);
  }
  return { entries, truncated, skipped: examined.length - told.length };
}

async function describe(folder: string, found: Dirent<Buffer>): Promise<Entry> {
  const name = found.name.toString();
  if (found.isDirectory()) return { name, type: 'directory', size_bytes: null };
  if (found.isSymbolicLink()) return { name, type: 'symlink', size_bytes: null };
  if (!found.isFile()) return { name, type: 'special', size_bytes: null };
  try {
    return { name, type: 'file', size_bytes: (await lstat(`${folder}/${name}`)).size };
  } catch {
    return { name, type: 'unavailable', size_bytes: null };
  }
}
