// Random identifiers, raw API keys and their hashes.

import { hash, randomBytes } from 'node:crypto';
import { idShapes, type IdKind } from '@cubicle/contract/ids.ts';

export function newId(kind: IdKind): string {
  const { prefix, hex } = idShapes[kind];
  return prefix + randomBytes(hex / 2).toString('hex');
}

export interface MintedKey {
  readonly raw: string;
  /** Hex of the hash that is stored. */
  readonly hash: string;
  /** What is shown of it afterwards. */
  readonly prefix: string;
}

export function mintKey(): MintedKey {
  const raw = `com_${randomBytes(24).toString('hex')}`;
  return { raw, hash: hashKey(raw), prefix: `${raw.slice(0, 12)}…` };
}

export function hashKey(raw: string): string {
  return hash('sha256', raw, 'hex');
}
