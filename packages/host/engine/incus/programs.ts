/** Knows the programs of the machine that the engine needs, and where they are. */
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';

/** Debian keeps incusd out of everybody's PATH. */
export const programPath = [
  '/usr/libexec/incus',
  '/opt/incus/bin',
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
];

/** What the daemon and this folder call, by the package that has it. */
export const programs: Record<string, string> = {
  incusd: 'incus-base',
  dnsmasq: 'dnsmasq-base',
  'mkfs.btrfs': 'btrfs-progs',
  nft: 'nftables',
  ip: 'iproute2',
  unsquashfs: 'squashfs-tools',
};

export async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(Object.keys(programs).map(findProgram));
  return Object.keys(programs).filter((_, index) => found[index] === undefined);
}

export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of programPath) {
    const file = join(folder, name);
    const problem = await access(file, constants.X_OK).catch((error: unknown) => error);
    if (problem === undefined) return file;
  }
  return undefined;
}
