// The WebSockets of a computer as the public wire has them: where they are, and how they end.

import type { HostSocketKind } from './host/api.ts';

/** The last segment of a socket's path, what it is on its host, and the field of the record that names it. */
export const publicSockets = {
  vnc: { kind: 'screen', field: 'url' },
  events: { kind: 'events', field: 'events_url' },
  terminal: { kind: 'terminal', field: 'terminal_url' },
} as const satisfies Record<string, { kind: HostSocketKind; field: string }>;

export type PublicSocket = keyof typeof publicSockets;

/** Close codes. Those from 4000 on are ours; their last three digits are the status a new upgrade would get. */
export const closeCodes = {
  done: 1000,
  /** The service is stopping; another of its processes, or the next start, takes the caller back. */
  goingAway: 1001,
  /** The caller broke the protocol of the socket, or tried what its credential does not allow. */
  refused: 1008,
  /** What the socket showed is not there for the moment. */
  tryAgain: 1013,
  /** The credentials of the computer were replaced: a restart, or another workspace. */
  replaced: 4401,
  /** The holder of the credential lost its authority. */
  revoked: 4403,
  /** The computer was deleted. */
  gone: 4404,
  /** The computer was stopped or suspended. */
  notRunning: 4409,
} as const;
