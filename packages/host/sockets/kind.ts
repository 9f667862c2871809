// What a kind of WebSocket into a computer is to the host: `screen`, `events`, `terminal`.

import type { WebSocket } from 'ws';
import type { GuestFailure } from '@cubicle/contract/host/api.ts';
import type { Context } from '../engine/engine.ts';

export interface SocketCall {
  readonly computer: string;
  /** The engine's name of it, by which its link is found. */
  readonly instance: string;
  /** Whose computer it is. */
  readonly account: string;
  /** The caller's own, without its credential. */
  readonly query: URLSearchParams;
  /** False for a credential that only watches. */
  readonly control: boolean;
}

/** A refusal in words of its own, answered as it stands. */
export interface SocketRefusal {
  readonly status: number;
  readonly error: string;
  readonly reason?: string;
  readonly resume_required?: true;
}

/** Why a socket is ended from this side. */
export type SocketEnd = 'stopped' | 'suspended' | 'restarted' | 'removed' | 'shutdown';

export interface SocketKind {
  /** How many may be open on one computer. Absent: the kind counts by itself. */
  readonly most?: number;
  /** True where it stays open while its computer is stopped, suspended or restarted. */
  readonly lasting?: true;
  /**
   * Before the upgrade, with the computer running: a refusal is answered over plain HTTP, in the words of
   * the registry that `app/guest-failures.ts` gives its name.
   */
  check(context: Context, call: SocketCall): Promise<GuestFailure | SocketRefusal | undefined>;
  /** It was checked, and the upgrade did not come about. */
  abandon?(call: SocketCall): void;
  /** After the upgrade. Pings, counting and the end of the computer are looked after already. */
  open(call: SocketCall, socket: WebSocket): void;
  /** A text frame to send before the socket is closed from this side. */
  farewell?(end: SocketEnd): string;
}
