/** Builds the command line that runs a PostgreSQL program as its user, wherever its folders lie. */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from './unprivileged.ts';

const run = promisify(execFile);

export interface Command {
  readonly file: string;
  readonly args: string[];
  readonly options: { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number };
}

export interface Launcher<Name extends string> {
  /** The path under which the started program sees a folder. */
  seen(name: Name): string;
  /** Everything on the way execs, so the pid that is spawned is the program's. */
  command(argv: readonly string[]): Command;
}

type Folders<Name extends string> = Readonly<Record<Name, string>>;

// A clean environment: PG* variables of the person must not reach the server, messages stay English.
const env = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin`, LC_ALL: 'C' };

/** Chooses the plainest launcher through which the server's user can reach all folders. */
export async function chooseLauncher<Name extends string>(
  identity: Identity,
  folders: Folders<Name>,
): Promise<Launcher<Name>> {
  const direct = directLauncher(identity, folders);
  if (!identity.switchUser) return direct;
  const closed = await closedFolders(direct, folders);
  if (closed.length === 0) return direct;
  const root = await mountPoint(Object.values<string>(folders));
  if (root !== undefined) {
    const apart = namespaceLauncher(identity, folders, root);
    if ((await closedFolders(apart, folders)).length === 0) return apart;
  }
  throw new Error(
    `PostgreSQL does not run as root and the user it runs as (uid ${identity.uid}) cannot enter ${closed.join(' or ')}; choose a CUBICLE_DATA and a checkout that this user can enter, for example under /var/lib, or set DATABASE_URL to a PostgreSQL of your own.`,
  );
}

function directLauncher<Name extends string>(
  { uid, gid, switchUser }: Identity,
  folders: Folders<Name>,
): Launcher<Name> {
  // Node also drops the supplementary groups when it switches the user.
  const user = switchUser ? { uid, gid } : {};
  return {
    seen: (name) => folders[name],
    command: ([file = '', ...args]) => ({ file, args, options: { cwd: '/', env, ...user } }),
  };
}

// $1 the mount point, $2 uid, $3 gid, then name and folder in pairs up to `--`, then the program.
const enterNamespace = `
set -e
root=$1 uid=$2 gid=$3
shift 3
mount -t tmpfs -o mode=0755,size=64k tmpfs "$root"
while [ "$1" != -- ]; do
  mkdir "$root/$1"
  mount --bind "$2" "$root/$1"
  shift 2
done
shift
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"
`;

/**
 * A checkout or data folder below a 0700 folder (/root, mktemp -d) is out of reach for the server's
 * user. A private mount namespace shows it just these folders, and ends with the process.
 */
function namespaceLauncher<Name extends string>(
  { uid, gid }: Identity,
  folders: Folders<Name>,
  root: string,
): Launcher<Name> {
  const entries = Object.entries<string>(folders);
  const unshare = ['--mount', '--propagation', 'private', 'sh', '-c', enterNamespace, 'sh'];
  return {
    seen: (name) => `${root}/${name}`,
    command: (argv) => ({
      file: 'unshare',
      args: [...unshare, root, `${uid}`, `${gid}`, ...entries.flat(), '--', ...argv],
      options: { cwd: '/', env },
    }),
  };
}

/** A folder that may be covered by the namespace's own mounts without hiding what they show. */
async function mountPoint(sources: string[]): Promise<string | undefined> {
  for (const folder of ['/mnt', '/media', '/srv', '/opt', '/home']) {
    if (sources.some((source) => `${source}/`.startsWith(`${folder}/`))) continue;
    const found = await stat(folder).catch(() => undefined);
    if (found?.isDirectory()) return folder;
  }
  return undefined;
}

const listClosed = 'for path; do test -x "$path" || echo "$path"; done';

/**
 * The outermost folders that keep the program's user out. It tries, rather than reads mode bits:
 * that also counts access lists and refused namespaces.
 */
async function closedFolders<Name extends string>(
  launcher: Launcher<Name>,
  folders: Folders<Name>,
): Promise<string[]> {
  const ways = new Set<string>();
  for (const name in folders) {
    for (let path = launcher.seen(name); !ways.has(path); path = dirname(path)) ways.add(path);
  }
  const probe = launcher.command(['sh', '-c', listClosed, 'sh', ...ways]);
  try {
    const { stdout } = await run(probe.file, probe.args, probe.options);
    const closed = stdout.split('\n').filter((line) => line !== '');
    return closed.filter((path) => !closed.includes(dirname(path)));
  } catch {
    return [...ways];
  }
}
