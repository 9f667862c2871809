/** Starts and ends the server process of one cluster. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findNativeFolder } from './binaries.ts';
import type { Cluster } from './cluster.ts';
import { errorCode } from './error-code.ts';
import { chooseLauncher } from './launch.ts';
import { disarmStaleLockFile, isServerOf, runningPostmaster } from './lock-files.ts';
import { prepareSocketFolder, socketName, socketPort, type SocketFolder } from './socket-folder.ts';

const largestLogBytes = 10 * 1024 * 1024;
const fastShutdownMs = 20_000;
const immediateShutdownMs = 10_000;
const pollMs = 25;

export interface Site {
  readonly dataDir: string;
  readonly cluster: Cluster;
  readonly socket: SocketFolder;
}

export interface Postmaster {
  readonly pid: number | undefined;
  /** False as soon as the process has ended. */
  running(): boolean;
  /** What it wrote since its start; of interest when it ended at once. */
  output(): Promise<string>;
}

export const logFile = (site: Site): string => join(site.dataDir, 'postgres.log');

/** Given on the command line, so that they change with the code and not with the cluster's age. */
function settings(socketFolder: string): string[] {
  const values: Record<string, string> = {
    listen_addresses: '',
    port: `${socketPort}`,
    // The setting is a list: quotes keep a comma in the path from splitting it.
    unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    max_connections: '200',
    shared_buffers: '128MB',
    fsync: 'on',
    synchronous_commit: 'on',
    wal_level: 'minimal',
    max_wal_senders: '0',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Errors of statements go to their caller, who logs them; here they would only fill the disk.
    log_min_messages: 'log',
    log_checkpoints: 'off',
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Starts a server, unless one runs in the cluster already: then there is nothing to do but wait. */
export async function startPostmaster(site: Site): Promise<Postmaster | undefined> {
  const { folder, identity } = site.cluster;
  if ((await runningPostmaster(folder)) !== undefined) return undefined;
  await prepareSocketFolder(site.socket, identity);
  await disarmStaleLockFile(join(folder, 'postmaster.pid'), folder);
  await disarmStaleLockFile(join(site.socket.path, `${socketName}.lock`), folder);
  const launcher = await chooseLauncher(identity, {
    native: await findNativeFolder(identity),
    cluster: folder,
    socket: site.socket.path,
  });
  const program = `${launcher.seen('native')}/bin/postgres`;
  const { file, args, options } = launcher.command([
    program,
    '-D',
    launcher.seen('cluster'),
    ...settings(launcher.seen('socket')),
  ]);
  const log = logFile(site);
  const logStart = await rotateLog(log);
  const descriptor = openSync(log, 'a', 0o600);
  try {
    const child = spawn(file, args, {
      ...options,
      // A file and no pipe: the server outlives a killed owner and must not lose its log.
      stdio: ['ignore', descriptor, descriptor],
      // Its own process group: Ctrl-C reaches only us, and we end the server in order.
      detached: true,
    });
    let spawnError = '';
    child.once('error', (error) => (spawnError = error.message));
    child.unref();
    return {
      pid: child.pid,
      running: () =>
        child.pid !== undefined && child.exitCode === null && child.signalCode === null,
      output: async () => spawnError || (await readFrom(log, logStart)),
    };
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the size of the log that the next server appends to. */
async function rotateLog(log: string): Promise<number> {
  const size = (await stat(log).catch(() => undefined))?.size ?? 0;
  if (size <= largestLogBytes) return size;
  await rename(log, `${log}.1`);
  return 0;
}

async function readFrom(file: string, start: number): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Ends the server that runs in the cluster, whoever started it, and waits until it is gone. */
export async function endPostmaster(site: Site, own?: Postmaster): Promise<void> {
  const { folder } = site.cluster;
  const pid = own?.running() ? own.pid : await runningPostmaster(folder);
  if (pid === undefined) return;
  const gone = async () => (own?.pid === pid ? !own.running() : !(await isServerOf(pid, folder)));
  for (const [signal, waitMs] of [
    ['SIGINT', fastShutdownMs],
    ['SIGQUIT', immediateShutdownMs],
  ] as const) {
    if (await gone()) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error;
    }
    const deadline = Date.now() + waitMs;
    while (Date.now() < deadline) {
      if (await gone()) return;
      await pause(pollMs);
    }
  }
  throw new Error(`The database server (pid ${pid}) does not end.`);
}
