// The secrets that a build's steps may read: found at submission, at the revision current then. Their values
// are opened for the order to the host and kept nowhere (Part 4, Builds 4 and 5).

import { Refusal } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Database } from '../db/database.ts';
import { aboutSecret } from '../db/sealed-values.ts';
import { type SealedSecretRow, sealedSecrets } from '../db/secrets.ts';
import { KeyringError } from '../keyring.ts';
import type { FrozenSecret } from './build-plan.ts';
import type { Vault } from './vault.ts';

export interface OpenSecrets {
  readonly frozen: readonly FrozenSecret[];
  /** By their variables. */
  readonly values: Record<string, string>;
}

export class BuildSecrets {
  readonly #database: Database;
  readonly #vault: Vault;

  constructor(database: Database, vault: Vault) {
    this.#database = database;
    this.#vault = vault;
  }

  async open(
    accountId: string,
    named: readonly { id: string; as: string }[],
  ): Promise<OpenSecrets> {
    if (named.length > limits.buildSecrets) {
      throw new Refusal('build_secrets_limit', { limit: limits.buildSecrets });
    }
    if (named.length === 0) return { frozen: [], values: {} };
    const ids = [...new Set(named.map(({ id }) => id))];
    const rows = await sealedSecrets(this.#database, accountId, ids);
    const found = new Map(rows.map((row) => [row.id, row]));
    if (ids.some((id) => !found.has(id))) throw new Refusal('build_secret_unresolved');
    await this.#requireKeyring();
    const frozen: FrozenSecret[] = [];
    const values: Record<string, string> = {};
    for (const { id, as } of named) {
      const { revision_id: revision, sealed } = found.get(id) as SealedSecretRow;
      frozen.push({ id, as, revision });
      values[as] = this.#value(sealed, aboutSecret(id, revision));
    }
    return { frozen, values };
  }

  /** With another keyring than the service's no value could be told from a lost one. */
  async #requireKeyring(): Promise<void> {
    try {
      await this.#vault.confirm();
    } catch (cause) {
      if (cause instanceof Refusal) throw cause;
      throw Object.assign(new Refusal('secrets_shut'), { cause });
    }
  }

  #value(sealed: Buffer, about: string): string {
    try {
      const plain = this.#vault.open(sealed, about);
      const value = plain.toString('utf8');
      plain.fill(0);
      // An environment's strings end with one.
      if (!value.includes('\0')) return value;
    } catch (error) {
      if (!(error instanceof KeyringError)) throw error;
    }
    throw new Refusal('build_secret_undeliverable');
  }
}
