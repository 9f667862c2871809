// Accounts of the guest, read from /etc/passwd.

import { readFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';

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

/** Without the desktop's account everything runs as the agent itself does. */
export function ownAccount(): Account {
  const { username: name, uid, gid, shell } = userInfo();
  return { name, uid, gid, home: homedir(), shell: shell ?? '/bin/sh' };
}

/** Whose files and commands ours are by default. */
export const isRoot = process.getuid?.() === 0;
