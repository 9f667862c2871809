/** Reads the pid files of a cluster: which server runs in it, and which of them are stale. */
import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorCode } from './error-code.ts';

const run = promisify(execFile);

/** Beyond every kernel's highest pid, and still a positive C int. */
const noSuchPid = '2147483647';

/** A server writes its pid within milliseconds of creating the file. */
const emptyFileIsStaleMs = 5_000;

export function processExists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/** The pid of the server that runs in this cluster folder now, if one does. */
export async function runningPostmaster(cluster: string): Promise<number | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = lockPid(text);
  return pid !== undefined && (await isServerOf(pid, cluster)) ? pid : undefined;
}

/** A pid alone proves nothing, as pids are used again: the process must work in this folder. */
export async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  try {
    if (process.platform !== 'linux') {
      const { stdout } = await run('ps', ['-o', 'command=', '-p', `${pid}`]);
      return stdout.includes('postgres') && stdout.includes(`-D ${cluster}`);
    }
    if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() !== 'postgres') return false;
    // By inode: seen from another mount namespace the folder has another path. A zombie has none.
    const [works, here] = await Promise.all([stat(`/proc/${pid}/cwd`), stat(cluster)]);
    return works.ino === here.ino && works.dev === here.dev;
  } catch {
    return false;
  }
}

/**
 * PostgreSQL takes any living process of its own user for the owner of a lock file, so after a crash
 * a recycled pid would keep it from starting. Such a pid becomes one that is surely dead; the file
 * stays, because its shared memory key guards against backends that outlive their server.
 */
export async function disarmStaleLockFile(file: string, cluster: string): Promise<void> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const pid = lockPid(text);
  if (pid === undefined) {
    const found = await stat(file).catch(() => undefined);
    const abandoned = found?.size === 0 && Date.now() - found.mtimeMs > emptyFileIsStaleMs;
    if (abandoned) await rm(file, { force: true });
    return;
  }
  if (processExists(pid) && !(await isServerOf(pid, cluster))) replacePid(file, text);
}

/** Compares and writes without a pause between: another process may be starting its server here. */
function replacePid(file: string, expected: string): void {
  const descriptor = openSync(file, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    if (!fstatSync(descriptor).isFile() || readFileSync(descriptor, 'utf8') !== expected) return;
    writeSync(descriptor, expected.replace(/^\s*-?\d+/, noSuchPid), 0);
  } finally {
    closeSync(descriptor);
  }
}

/** A standalone backend notes its pid as a negative number. */
function lockPid(text: string): number | undefined {
  const pid = Math.abs(Number.parseInt(text, 10));
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
}
