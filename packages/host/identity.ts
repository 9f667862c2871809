// Who this host is: an id and a secret of its own, made once and kept in its folder.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from './whole-file.ts';

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
  await writeWhole(path, `${value}\n`, 0o600);
  return value;
}
