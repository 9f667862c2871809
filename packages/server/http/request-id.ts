// The correlation of a request: ours alone, whatever the caller sends (Part 1 rule 2).

import { randomUUID } from 'node:crypto';

export const requestIdHeader = 'X-Request-ID';

export function newRequestId(): string {
  return randomUUID();
}
