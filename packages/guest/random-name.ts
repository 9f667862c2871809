// Names that nothing else has. From the kernel directly: node:crypto alone is 3 MB in every guest.

import { closeSync, openSync, readSync } from 'node:fs';

/** Hex digits, two a byte. */
export function randomName(bytes: number): string {
  const random = Buffer.alloc(bytes);
  const fd = openSync('/dev/urandom', 'r');
  try {
    readSync(fd, random);
  } finally {
    closeSync(fd);
  }
  return random.toString('hex');
}
