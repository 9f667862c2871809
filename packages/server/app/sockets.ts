// Who may open a socket into a computer, and which are open in this process. A socket stays open only while
// its credential would still open it: news of a change makes every one concerned prove that again.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostSocketKind } from '@cubicle/contract/host/api.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { closeCodes } from '@cubicle/contract/sockets.ts';
import type { SocketClaim, SocketGrant } from '../db/socket-grants.ts';
import type { Claim, Credentials } from './credentials.ts';

export interface SocketWish {
  readonly computerId: string;
  readonly kind: HostSocketKind;
  readonly token: string;
}

/** A credential that holds. */
export interface Admitted {
  readonly claim: Claim;
  readonly kind: HostSocketKind;
  readonly grant: SocketGrant;
}

export interface OpenSocket {
  /** At once, with a code that says why. */
  close(code: number, reason: string): void;
}

/** What a socket counts by. */
export interface Place {
  readonly join: (socket: OpenSocket) => void;
  readonly leave: () => void;
}

interface Held extends Admitted {
  socket: OpenSocket | undefined;
  /** How often in a row the store did not tell whether it may stay. */
  unsure: number;
}

type Verdict = 'stands' | 'replaced' | 'revoked' | 'gone';

const reasons: Record<Exclude<Verdict, 'stands'>, string> = {
  replaced: 'the credentials were replaced',
  revoked: 'the right to it was withdrawn',
  gone: 'the computer was deleted',
};

/** A socket that could not prove its right this often is ended: the store is away, and nothing is heard. */
const mostUnsure = 3;
export const reviewMs = 10_000;

export class Sockets {
  readonly #credentials: Credentials;
  readonly #grantOf: (claim: SocketClaim) => Promise<SocketGrant | undefined>;
  readonly #held = new Set<Held>();
  #stopped = false;

  constructor(
    credentials: Credentials,
    grantOf: (claim: SocketClaim) => Promise<SocketGrant | undefined>,
  ) {
    this.#credentials = credentials;
    this.#grantOf = grantOf;
  }

  /** Refused in one way, whatever is wrong with the credential or missing behind it. */
  async admit({ computerId, kind, token }: SocketWish): Promise<Admitted> {
    if (this.#stopped) throw new Refusal('not_ready');
    const claim = isId('computer', computerId)
      ? this.#credentials.claim(computerId, token)
      : undefined;
    const opens = claim !== undefined && (kind === 'screen' || claim.surface === 'control');
    const grant = opens ? await this.#grantOf(claim) : undefined;
    if (claim === undefined || grant === undefined || verdict(claim, grant) !== 'stands') {
      throw new Refusal('socket_unknown');
    }
    return { claim, kind, grant };
  }

  /**
   * Counts it from here on; `join` gives the stream once there is one, and `leave` ends the counting.
   * Whoever lost the right between the admission and the upgrade is cut as soon as there is a stream.
   */
  enter(admitted: Admitted): Place {
    const { grant, kind } = admitted;
    const held: Held = { ...admitted, socket: undefined, unsure: 0 };
    const same = [...this.#held].filter(
      (other) => other.kind === kind && other.grant.account_id === grant.account_id,
    );
    if (same.length >= limits.socketsPerAccount) {
      const words = { limit: limits.socketsPerAccount, scope: 'account' };
      throw new Refusal('socket_limit', words);
    }
    this.#held.add(held);
    return {
      join: (socket) => {
        held.socket = socket;
        if (this.#stopped) socket.close(closeCodes.goingAway, 'the service is stopping');
        else void this.#review([held]);
      },
      leave: () => this.#held.delete(held),
    };
  }

  /** What the database announces: `computer`, `key`, `user`, `account`. */
  changed(kind: string, id: string): void {
    void this.#review([...this.#held].filter((held) => concerns(held, kind, id)));
  }

  /** Everything, where something may have been missed; and now and then, for a store that fell silent. */
  async review(): Promise<void> {
    await this.#review([...this.#held]);
  }

  /** The callers are told to come back, and nobody new is let in. */
  stop(): void {
    this.#stopped = true;
    for (const { socket } of this.#held) {
      socket?.close(closeCodes.goingAway, 'the service is stopping');
    }
  }

  async #review(some: readonly Held[]): Promise<void> {
    await Promise.all(some.map((held) => this.#reviewOne(held)));
  }

  async #reviewOne(held: Held): Promise<void> {
    let found: Verdict;
    try {
      found = verdict(held.claim, await this.#grantOf(held.claim));
    } catch {
      held.unsure += 1;
      if (held.unsure >= mostUnsure) held.socket?.close(closeCodes.tryAgain, 'try again');
      return;
    }
    held.unsure = 0;
    if (found !== 'stands') held.socket?.close(closeCodes[found], reasons[found]);
  }
}

function concerns({ claim, grant }: Held, kind: string, id: string): boolean {
  if (kind === 'computer') return claim.computerId === id;
  if (kind === 'key') return claim.keyId === id;
  if (kind === 'user') return grant.user_id === id;
  return kind === 'account' && grant.account_id === id;
}

function verdict(claim: Claim, grant: SocketGrant | undefined): Verdict {
  if (grant === undefined || grant.computer_state !== 'live') return 'gone';
  if (grant.role === null || grant.suspended !== false) return 'revoked';
  if (claim.surface === 'control' && grant.role === 'viewer') return 'revoked';
  return grant.rotation === claim.rotation ? 'stands' : 'replaced';
}
