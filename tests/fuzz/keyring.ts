// Credentials in every standing, and things that are none.

import type { Random } from './random.ts';

/** Raw keys. All but `poor`, `suspended` and `gone` are of the lane's own account. */
export interface Keyring {
  readonly owner: string;
  readonly member: string;
  readonly viewer: string;
  readonly confinedOwner: string;
  readonly confinedViewer: string;
  readonly revoked: string;
  /** Of an account without a plan, whose budget is soon spent. */
  readonly poor: string;
  readonly suspended: string;
  readonly gone: string;
}

const weights = [
  [50, 'owner'],
  [6, 'member'],
  [5, 'viewer'],
  [5, 'confinedOwner'],
  [3, 'confinedViewer'],
  [3, 'revoked'],
  [6, 'poor'],
  [3, 'suspended'],
  [2, 'gone'],
  [5, 'unknown'],
  [3, 'absent'],
  [2, 'twice'],
  [7, 'odd'],
] as const;

/** The header lines, none where no credential is sent. */
export function authorization(random: Random, keys: Keyring): string[] {
  const bearer = (key: string) => [`Authorization: Bearer ${key}`];
  const which = random.weighted(weights);
  switch (which) {
    case 'unknown':
      return bearer(`com_${random.hex(48)}`);
    case 'absent':
      return [];
    case 'twice':
      return [...bearer(keys.viewer), ...bearer(keys.owner)];
    case 'odd':
      return [`Authorization: ${random.pick(oddCredentials(keys.owner))}`];
    default:
      return bearer(keys[which]);
  }
}

/** Whether the head of a request for a listing shows all workspaces of the lane's account. */
export function listsEverything(head: string, { owner, member, viewer }: Keyring): boolean {
  const key = /^authorization: bearer +(\S+)$/im.exec(head)?.[1];
  return key !== undefined && [owner, member, viewer].includes(key);
}

function oddCredentials(key: string): string[] {
  return [
    '',
    'Bearer',
    'Bearer ',
    `bearer   ${key}`,
    `BEARER ${key}`,
    `Bearer\t${key}`,
    `Bearer ${key},`,
    `Bearer ${key} x`,
    `Bearer ${key.toUpperCase()}`,
    `Bearer ${'a'.repeat(5_000)}`,
    'Bearer \u00ff\u00fe',
    'Bearer null',
    `Basic ${Buffer.from(`x:${key}`).toString('base64')}`,
    'Bearer eyJhbGciOiJub25lIn0.e30.',
    `Digest username="${key}"`,
    '=',
  ];
}
