// How the specification's words on an operation are written down for the matrix.

import type { Answer } from '../../support/client.ts';
import type { Caller, Role } from '../callers.ts';

export interface Specified {
  readonly method: string;
  readonly path: string;
  /** The lowest role that may call it. */
  readonly role: Role;
  readonly confinedKeys: 'admitted' | 'refused';
  readonly whileSuspended: 'answers' | 'refused';
  readonly needsVerifiedEmail: boolean;
  readonly cost: number;
  /** Of its success. */
  readonly status: number;
  readonly calls: readonly Call[];
}

/** A valid request, which succeeds for whoever may make it. */
export interface Call {
  /** Where only a key that may manage keys is admitted, by the handler and not at the door. */
  readonly needsManager?: true;
  prepare(caller: Caller): Promise<Prepared>;
}

export interface Prepared {
  /** What stands for `{id}` and others in the path. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** With its question mark. */
  readonly query?: string;
  readonly json?: unknown;
  readonly raw?: string;
  /** The tables that its success changes; no others, and a refusal none. */
  readonly changes: readonly string[];
  /** Holds after its success. */
  proves(answer: Answer): Promise<void> | void;
}

const read = { needsVerifiedEmail: false, cost: 1, status: 200 };
export const usual = { confinedKeys: 'admitted', whileSuspended: 'refused', ...read } as const;
