// Accounts of the guest, read from /etc/passwd.

import { readFileSync } from 'node:fs';

export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell: string;
}

/** Read each time: the file is small, and a guest may change it. */
export function findAccount(wanted: string): Account | undefined {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name, , uid, gid, , home, shell] = line.split(':');
    if (name === wanted && home !== undefined) {
      return { name, uid: Number(uid), gid: Number(gid), home, shell: shell || '/bin/sh' };
    }
  }
  return undefined;
}

/** Whose files and commands ours are by default. */
export const isRoot = process.getuid?.() === 0;
