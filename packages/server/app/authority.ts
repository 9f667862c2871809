// Authority: who a request acts for. Decided here and nowhere else.

import { timingSafeEqual } from 'node:crypto';
import { Refusal } from '@cubicle/contract/errors.ts';
import { rawKeyPattern } from '@cubicle/contract/ids.ts';
import { atLeast, type Role } from '@cubicle/contract/route.ts';
import { type AuthorityRow, type KeyLookup, lockAuthorityOf } from '../db/authority.ts';
import type { Database, Runner } from '../db/database.ts';
import type { Holder } from '../db/api-keys.ts';
import { hashKey } from './secrets.ts';

export interface Authority extends Holder {
  readonly keyId: string;
  readonly manageKeys: boolean;
  readonly accountSuspended: boolean;
  /** Units of the plan's rate budget. */
  readonly rateUnits: number;
  readonly verified: boolean;
  readonly role: Role;
}

/** What is remembered of a key: its authority, or that its holder can no longer act. */
export type Standing = Authority | 'gone';

export interface Remembered {
  readonly hash: Buffer;
  readonly keyId: string;
  readonly accountId: string;
  readonly userId: string;
  readonly standing: Standing;
}

/** Authorities by the hash of their key; see authority-memory.ts. */
export interface AuthorityMemory {
  get(hash: string): Remembered | undefined;
  /** Marks the moment before a read, so that a change during the read is not overwritten by it. */
  mark(): number;
  put(hash: string, entry: Remembered, mark: number): void;
  forget(kind: 'account' | 'user' | 'key', id: string): void;
}

export class Gatekeeper {
  readonly #lookup: (hash: string) => Promise<KeyLookup>;
  readonly #read: (keyId: string) => Promise<AuthorityRow | undefined>;
  readonly #memory: AuthorityMemory;

  /** `lookup` by the hash of a key, `read` by its id. */
  constructor(
    lookup: (hash: string) => Promise<KeyLookup>,
    read: (keyId: string) => Promise<AuthorityRow | undefined>,
    memory: AuthorityMemory,
  ) {
    this.#lookup = lookup;
    this.#read = read;
    this.#memory = memory;
  }

  /** Part 5 rules 6 and 7: 401 with one of three reasons, or 403 `revoked` when the holder is gone. */
  admit(authorization: string | undefined): Authority | Promise<Authority> {
    const hash = hashKey(bearerKey(authorization));
    const known = this.#memory.get(hash);
    if (known !== undefined && sameHash(known.hash, hash)) return stillStanding(known.standing);
    return this.#admitFromStore(hash);
  }

  async #admitFromStore(hash: string): Promise<Authority> {
    const mark = this.#memory.mark();
    const found = await this.#lookup(hash);
    if (found === 'revoked') throw new Refusal('credential_revoked');
    if (found === 'unknown' || !sameHash(found.hash, hash)) throw new Refusal('credential_invalid');
    const entry: Remembered = {
      hash: found.hash,
      keyId: found.key_id,
      accountId: found.account_id,
      userId: found.user_id,
      standing: authorityOf(found) ?? 'gone',
    };
    this.#memory.put(hash, entry, mark);
    return stillStanding(entry.standing);
  }

  /** Throws what somebody who was admitted before would be refused with now. */
  async stands({ keyId }: Authority): Promise<void> {
    const row = await this.#read(keyId);
    if (row === undefined) throw new Refusal('credential_revoked');
    const now = authorityOf(row);
    if (now === undefined) throw new Refusal('authority_gone');
    if (now.accountSuspended) throw new Refusal('account_suspended');
  }

  /** For this process: a change it made itself is seen by its very next request. */
  forget(kind: 'account' | 'user' | 'key', id: string): void {
    this.#memory.forget(kind, id);
  }
}

/**
 * A change on behalf of a caller: one transaction in which the authority is locked and checked again,
 * so that a key revoked, a role lowered or an account suspended meanwhile refuses it.
 */
export async function changeAs<Result>(
  database: Database,
  authority: Authority,
  needed: Role,
  work: (tx: Runner) => Promise<Result>,
): Promise<Result> {
  return database.transaction(async (tx) => {
    const row = await lockAuthorityOf(tx, authority.accountId, authority.keyId);
    if (row === 'key gone') throw new Refusal('credential_revoked');
    if (row === 'membership gone') throw new Refusal('authority_gone');
    const now = authorityOf(row);
    if (now === undefined) throw new Refusal('authority_gone');
    if (now.accountSuspended) throw new Refusal('account_suspended');
    if (!atLeast(now.role, needed)) throw new Refusal('role_lowered');
    return work(tx);
  });
}

const bearer = /^Bearer +([^\s]+)$/i;

function bearerKey(authorization: string | undefined): string {
  if (authorization === undefined) throw new Refusal('credential_missing');
  const key = bearer.exec(authorization)?.[1];
  if (key === undefined || !rawKeyPattern.test(key)) throw new Refusal('credential_invalid');
  return key;
}

function stillStanding(standing: Standing): Authority {
  if (standing === 'gone') throw new Refusal('authority_gone');
  return standing;
}

function authorityOf(row: AuthorityRow): Authority | undefined {
  if (row.role === null || row.user_suspended || row.seat_suspended === true) return undefined;
  return {
    accountId: row.account_id,
    workspaceId: row.workspace_id,
    userId: row.user_id,
    keyId: row.key_id,
    manageKeys: row.manage_keys,
    accountSuspended: row.account_suspended,
    rateUnits: row.rate_units,
    verified: row.verified,
    role: row.role,
  };
}

function sameHash(stored: Buffer, hash: string): boolean {
  const given = Buffer.from(hash, 'hex');
  return stored.length === given.length && timingSafeEqual(stored, given);
}
