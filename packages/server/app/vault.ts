// Seals what the database must not tell, once it is sure that this server's keyring is the service's: what
// one process seals every other must be able to open.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { Database } from '../db/database.ts';
import {
  aboutCheck,
  keyringCheck,
  places,
  putSealed,
  replaceKeyringCheck,
  type SealedRow,
  sealedOtherwise,
} from '../db/sealed-values.ts';
import { type Keyring, keyIdOf } from '../keyring.ts';

export class Vault {
  readonly #database: Database;
  readonly #keyring: Keyring;
  /** The key that was found to be the service's. */
  #confirmed: string | undefined;

  constructor(database: Database, keyring: Keyring) {
    this.#database = database;
    this.#keyring = keyring;
  }

  /** Throws a KeyringError where another keyring sealed what is in the database. */
  async confirm(): Promise<void> {
    const mine = this.#keyring.seal(Buffer.from(aboutCheck), aboutCheck);
    const key = keyIdOf(mine);
    if (key === this.#confirmed) return;
    this.#keyring.open(await keyringCheck(this.#database, mine), aboutCheck);
    this.#confirmed = key;
  }

  async seal(plain: Buffer, about: string): Promise<Buffer> {
    try {
      await this.confirm();
      return this.#keyring.seal(plain, about);
    } catch (cause) {
      if (cause instanceof Refusal) throw cause;
      const refusal = new Refusal('keyring_unavailable');
      refusal.cause = cause;
      throw refusal;
    }
  }

  /** Throws a KeyringError for what this server has no key for. */
  open(sealed: Buffer, about: string): Buffer {
    return this.#keyring.open(sealed, about);
  }

  /**
   * Adds a key and seals everything anew with it. The key before it stays: a server may have sealed with it
   * at this very moment. Keys before that go, once nothing is left that they sealed.
   */
  async rotate(): Promise<{ key: string; sealed: number; lost: number; dropped: number }> {
    await this.confirm();
    const key = await this.#keyring.add();
    const done = { key, sealed: 0, lost: 0, dropped: 0 };
    for (const place of places) {
      for (let after: string | undefined = ''; after !== undefined;) {
        after = await this.#database.transaction(async (tx) => {
          const rows = await sealedOtherwise(tx, place, key, after as string);
          for (const row of rows) {
            if (!this.#keyring.ids.includes(keyIdOf(row.sealed))) {
              done.lost += 1;
              continue;
            }
            await putSealed(tx, place, row.id, this.#anew(row));
            done.sealed += 1;
          }
          return rows.at(-1)?.id;
        });
        // Another rotation meanwhile has a newer key, and the rest to do.
        if (this.#keyring.ids[0] !== key) return done;
      }
    }
    const old = this.#keyring.ids.slice(2);
    for (const id of old) await this.#keyring.drop(id);
    return { ...done, dropped: old.length };
  }

  /** Makes this keyring the service's, for when the one before is lost: what that one sealed stays shut. */
  async adopt(): Promise<void> {
    const mine = this.#keyring.seal(Buffer.from(aboutCheck), aboutCheck);
    await keyringCheck(this.#database, mine);
    await replaceKeyringCheck(this.#database, mine);
  }

  #anew({ about, sealed }: SealedRow): Buffer {
    const plain = this.#keyring.open(sealed, about);
    try {
      return this.#keyring.seal(plain, about);
    } finally {
      plain.fill(0);
    }
  }
}
