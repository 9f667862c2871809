// Signatures as Standard Webhooks have them (Part 6.1).

import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';

/** 32 bytes, which are 44 characters of base64. */
export function newSecret(): Buffer {
  return randomBytes(32);
}

/** As it is shown, once. */
export function secretText(secret: Buffer): string {
  return prefix + secret.toString('base64');
}

/** One signature per secret, the newest secret first. */
export function signatures(
  secrets: readonly Buffer[],
  id: string,
  timestamp: number,
  body: string,
): string {
  const signed = `${id}.${timestamp}.${body}`;
  return secrets
    .map((secret) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
    .join(' ');
}
