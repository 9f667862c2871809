// The secret a host daemon and the control plane share on one machine: a file beside the daemon's socket,
// readable by their user alone.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { HostRow } from '../db/hosts.ts';

export function localToken(host: HostRow): string {
  const socket = host.address.replace(/^unix:/, '');
  return readFileSync(join(dirname(socket), 'token'), 'utf8').trim();
}
