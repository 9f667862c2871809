// Who this host is: an id and a secret of its own, made once and kept in its folder.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface HostIdentity {
  readonly id: string;
  /** What the control plane shows to be let in. */
  readonly token: string;
}

export async function hostIdentity(folder: string): Promise<HostIdentity> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return {
    id: await kept(join(folder, 'id'), () => `host-${randomBytes(6).toString('hex')}`),
    token: await kept(join(folder, 'token'), () => randomBytes(32).toString('hex')),
  };
}

async function kept(path: string, make: () => string): Promise<string> {
  const known = await readFile(path, 'utf8').catch(() => undefined);
  if (known !== undefined && known.trim() !== '') return known.trim();
  const value = make();
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, `${value}\n`, { mode: 0o600 });
  await rename(draft, path);
  return value;
}
