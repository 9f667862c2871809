/** Owns the cluster folder: where it lies and how it is made, all or nothing, at the first start. */
import { execFile } from 'node:child_process';
import { access, chmod, chown, mkdir, mkdtemp, open } from 'node:fs/promises';
import { readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findNativeFolder } from './binaries.ts';
import { errorCode } from './error-code.ts';
import { chooseLauncher } from './launch.ts';
import { processExists } from './lock-files.ts';
import { chooseIdentity, type Identity } from './unprivileged.ts';

const run = promisify(execFile);

export interface Cluster {
  readonly folder: string;
  readonly identity: Identity;
}

/** Makes the data folder if it is missing and returns its one true path. */
export async function prepareDataFolder(dataDir: string): Promise<string> {
  const created = await mkdir(dataDir, { recursive: true });
  // The server's user passes through root's data folder to its own cluster, and can list nothing.
  if (created !== undefined) await chmod(dataDir, process.geteuid?.() === 0 ? 0o711 : 0o700);
  return await realpath(dataDir);
}

export async function prepareCluster(
  dataDir: string,
  say: (line: string) => void,
): Promise<Cluster> {
  const folder = join(dataDir, 'postgres');
  await removeLeftovers(dataDir);
  if (!(await isCluster(folder))) {
    say('Preparing the database (first start)');
    await makeCluster(dataDir, folder, await chooseIdentity(undefined, say));
  }
  return { folder, identity: await chooseIdentity(folder, say) };
}

async function makeCluster(dataDir: string, folder: string, identity: Identity): Promise<void> {
  // The pid in the name tells a leftover from the work of another process that starts right now.
  const made = await mkdtemp(join(dataDir, `postgres.new-${process.pid}-`));
  try {
    if (identity.switchUser) await chown(made, identity.uid, identity.gid);
    await initialise(made, identity);
    await putInPlace(made, folder);
    await syncFolder(dataDir);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** initdb writes everything through to the disk by itself before it ends. */
async function initialise(folder: string, identity: Identity): Promise<void> {
  const launcher = await chooseLauncher(identity, {
    native: await findNativeFolder(identity),
    cluster: folder,
  });
  const { file, args, options } = launcher.command([
    `${launcher.seen('native')}/bin/initdb`,
    `--pgdata=${launcher.seen('cluster')}`,
    '--username=cubicle',
    // The socket's folder decides who may connect.
    '--auth=trust',
    '--encoding=UTF8',
    // PostgreSQL's own C.UTF-8 sorts alike on every machine, whatever its libc or ICU.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
  ]);
  try {
    await run(file, args, options);
  } catch (cause) {
    const lines = (cause instanceof Error && 'stderr' in cause ? String(cause.stderr) : '')
      .trim()
      .split('\n');
    const reason = lines.find((line) => line.includes('error:')) ?? lines.at(-1);
    throw new Error(`PostgreSQL could not prepare its data folder: ${reason}`, { cause });
  }
}

async function putInPlace(made: string, folder: string): Promise<void> {
  try {
    await rename(made, folder);
  } catch (error) {
    // Another process that started at the same time was first: its cluster is as good.
    if (await isCluster(folder)) return;
    const code = errorCode(error) ?? '';
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(code)) throw error;
    throw new Error(`${folder} is in the way of the database; move it elsewhere.`, {
      cause: error,
    });
  }
}

/** What a process killed in the middle of its initdb leaves behind. */
async function removeLeftovers(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const pid = /^postgres\.new-(\d+)-/.exec(name)?.[1];
    if (pid === undefined || (Number(pid) !== process.pid && processExists(Number(pid)))) continue;
    // An initdb that outlives its parent may still write there: best effort, the name is not reused.
    await rm(join(dataDir, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  }
}

async function isCluster(folder: string): Promise<boolean> {
  if ((await stat(folder).catch(() => undefined)) === undefined) return false;
  return await access(join(folder, 'PG_VERSION')).then(
    () => true,
    // Not being allowed to look means that somebody else's cluster is there.
    (error: unknown) => errorCode(error) === 'EACCES',
  );
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
