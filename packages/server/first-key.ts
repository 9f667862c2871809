// The first account's key, kept for the operator in the data folder, readable by its owner alone.

import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

export interface FirstKey {
  base_url: string;
  account_id: string;
  key: string;
}

export function firstKeyPath(dataDir: string): string {
  return join(dataDir, 'first-key.json');
}

export async function keepFirstKey(dataDir: string, key: FirstKey): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  const path = firstKeyPath(dataDir);
  const draft = `${path}.${process.pid}.draft`;
  const file = await open(draft, 'w', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(`${JSON.stringify(key, null, 2)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

/** Follows the service to the address it listens on now. */
export async function refreshFirstKey(dataDir: string, baseUrl: string): Promise<boolean> {
  const text = await readFile(firstKeyPath(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return false;
  const kept = JSON.parse(text) as FirstKey;
  if (kept.base_url !== baseUrl) await keepFirstKey(dataDir, { ...kept, base_url: baseUrl });
  return true;
}
