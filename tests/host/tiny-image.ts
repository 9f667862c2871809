/** Makes the smallest image that boots: busybox, an init of ten lines, a DHCP client. Kept in the cache. */
import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { apt } from '../../packages/host/engine/incus/apt.ts';
import type { ImageFiles } from '../../packages/host/engine/engine.ts';

const run = promisify(execFile);

/** PID 1: takes the signal that asks for a shutdown, and reaps whatever is left to it. */
const init = `#!/bin/sh
trap 'exit 0' PWR
hostname tiny
ip link set lo up
ip link set eth0 up
udhcpc -b -i eth0 -s /sbin/lease >/dev/null 2>&1 &
while :; do sleep 1000 & wait; done
`;

const lease = `#!/bin/sh
[ "$1" = bound ] || exit 0
ip address add "$ip/$mask" dev eth0
ip route add default via "$router"
for server in $dns; do echo "nameserver $server"; done > /etc/resolv.conf
`;

const metadata = `architecture: ${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}
creation_date: 1
properties:
  description: tiny
`;

export interface TinyImage {
  readonly digest: string;
  readonly files: ImageFiles;
}

/** Takes 3.5 s the first time on a machine. */
export async function tinyImage(): Promise<TinyImage> {
  const recipe = [init, lease, metadata, 'busybox-static', '2'].join('\0');
  const digest = createHash('sha256').update(recipe).digest('hex');
  const cache = process.env['CUBICLE_CACHE'] ?? join(homedir(), '.cache/cubicle');
  const folder = join(cache, `tiny-${digest.slice(0, 16)}`);
  const files = { metadata: join(folder, 'metadata.tar'), rootfs: join(folder, 'root.squashfs') };
  if ((await stat(folder).catch(() => undefined)) === undefined) await make(cache, folder);
  return { digest, files };
}

async function make(cache: string, folder: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const work = await mkdtemp(join(tmpdir(), 'cubicle-tiny-'));
  const made = await mkdtemp(join(cache, 'tiny.new-'));
  try {
    const busybox = await fetchBusybox(work);
    const root = join(work, 'root');
    await fillRoot(root, busybox);
    await writeFile(join(work, 'metadata.yaml'), metadata);
    await run('tar', ['-C', work, '-cf', join(made, 'metadata.tar'), 'metadata.yaml']);
    const quiet = ['-all-root', '-noappend', '-quiet', '-no-progress'];
    await run('mksquashfs', [root, join(made, 'root.squashfs'), ...quiet]);
    await chmod(made, 0o755);
    // Another test file may have made the same one meanwhile.
    await rename(made, folder).catch(async () => stat(folder));
  } finally {
    await rm(work, { recursive: true, force: true });
    await rm(made, { recursive: true, force: true });
  }
}

/** From the machine's own archive, and installed nowhere. */
async function fetchBusybox(work: string): Promise<string> {
  const download = () => run('apt-get', ['download', 'busybox-static'], { cwd: work });
  await download().catch(async () => {
    await apt(['update'], () => {});
    await download();
  });
  await run('sh', ['-c', 'dpkg-deb -x busybox-static_*.deb unpacked'], { cwd: work });
  const file = join(work, 'unpacked/bin/busybox');
  // Debian 13 and Ubuntu have it below /usr.
  return (await stat(file).catch(() => undefined)) ? file : join(work, 'unpacked/usr/bin/busybox');
}

async function fillRoot(root: string, busybox: string): Promise<void> {
  const folders = ['bin', 'sbin', 'dev', 'etc', 'proc', 'sys', 'tmp', 'run', 'root', 'var', 'opt'];
  for (const name of folders) await mkdir(join(root, name), { recursive: true });
  await cp(busybox, join(root, 'bin/busybox'));
  const { stdout } = await run(busybox, ['--list']);
  for (const name of stdout.split('\n').filter((line) => line !== '' && line !== 'busybox')) {
    await symlink('busybox', join(root, 'bin', name));
  }
  for (const [name, text] of Object.entries({ init, lease })) {
    await writeFile(join(root, 'sbin', name), text, { mode: 0o755 });
  }
  await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  await writeFile(join(root, 'etc/group'), 'root:x:0:\n');
  await chmod(join(root, 'tmp'), 0o1777);
}
