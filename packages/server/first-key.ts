// The first account's key, kept for the operator in the data folder, readable by its owner alone.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceKept, sweepDrafts } from './kept-file.ts';

export interface FirstKey {
  base_url: string;
  account_id: string;
  key: string;
}

export function firstKeyPath(dataDir: string): string {
  return join(dataDir, 'first-key.json');
}

export async function keepFirstKey(dataDir: string, key: FirstKey): Promise<void> {
  await replaceKept(firstKeyPath(dataDir), `${JSON.stringify(key, null, 2)}\n`);
}

/** Follows the service to the address it listens on now. */
export async function refreshFirstKey(dataDir: string, baseUrl: string): Promise<boolean> {
  await sweepDrafts(firstKeyPath(dataDir));
  const text = await readFile(firstKeyPath(dataDir), 'utf8').catch(() => undefined);
  if (text === undefined) return false;
  const kept = JSON.parse(text) as FirstKey;
  if (kept.base_url !== baseUrl) await keepFirstKey(dataDir, { ...kept, base_url: baseUrl });
  return true;
}
