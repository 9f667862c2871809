/** Decides which user the PostgreSQL server runs as: it refuses to run as root. */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Identity {
  readonly uid: number;
  readonly gid: number;
  /** True when we are root and the server runs as somebody else. */
  readonly switchUser: boolean;
}

/** `cluster` is the folder of an existing cluster, or undefined before the first start. */
export async function chooseIdentity(
  cluster: string | undefined,
  say: (line: string) => void,
): Promise<Identity> {
  const uid = process.geteuid?.() ?? -1;
  const gid = process.getegid?.() ?? -1;
  const owner = cluster === undefined ? undefined : await stat(cluster);
  if (uid !== 0) {
    if (owner !== undefined && owner.uid !== uid) {
      throw new Error(
        `The database in ${cluster} belongs to another user (uid ${owner.uid}); run this as that user or as root.`,
      );
    }
    return { uid, gid, switchUser: false };
  }
  if (owner === undefined) return await serverAccount(say);
  if (owner.uid === 0) {
    throw new Error(
      `The database in ${cluster} belongs to root, as whom PostgreSQL does not run; give it to another user: chown -R nobody ${cluster}`,
    );
  }
  return { uid: owner.uid, gid: owner.gid, switchUser: true };
}

/** initdb looks its user up by name, so the uid must be that of a real account. */
async function serverAccount(say: (line: string) => void): Promise<Identity> {
  const existing = await account('cubicle');
  if (existing) return existing;
  const created = await createAccount();
  // Asked again even after a failure: another process may be creating the same account.
  const own = await account('cubicle');
  if (own) {
    if (created) say('Created the system user cubicle, which the database server runs as.');
    return own;
  }
  const nobody = await account('nobody');
  if (nobody) return nobody;
  throw new Error(
    'PostgreSQL does not run as root and this machine has no user cubicle or nobody to run it as; create one: useradd --system cubicle',
  );
}

async function createAccount(): Promise<boolean> {
  const options = ['--system', '--no-create-home', '--home-dir', '/nonexistent'];
  try {
    await run('useradd', [...options, '--shell', '/usr/sbin/nologin', 'cubicle']);
    return true;
  } catch {
    return false;
  }
}

async function account(name: string): Promise<Identity | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout), switchUser: true };
  } catch {
    return undefined;
  }
}
