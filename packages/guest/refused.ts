// Why the agent does not do what the host asks. Thrown where it is found, told on the channel.

import type { RefusalReason } from '@cubicle/contract/guest/messages.ts';

export class Refused extends Error {
  readonly reason: RefusalReason;
  readonly size: number | null;

  constructor(reason: RefusalReason, options: { size?: number; detail?: string } = {}) {
    super(options.detail ?? reason);
    this.reason = reason;
    this.size = options.size ?? null;
  }
}

const reasons: Record<string, RefusalReason> = {
  ENOENT: 'absent',
  ENOTDIR: 'absent',
  ELOOP: 'absent',
  ENAMETOOLONG: 'name_too_long',
  EISDIR: 'not_a_file',
  EEXIST: 'exists',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  ENOSPC: 'no_room',
  EDQUOT: 'no_room',
  EAGAIN: 'busy',
  EMFILE: 'busy',
  ENFILE: 'busy',
  ENOMEM: 'busy',
};

export function asRefused(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const code = errorCode(error) ?? 'error';
  return new Refused(reasons[code] ?? 'failed', { detail: code });
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
