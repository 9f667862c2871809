// Secrets as callers keep them: wire-account section 3. A value goes in, is sealed, and no answer, log line
// or error ever carries it.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Secret, SecretList } from '@cubicle/contract/resources/secrets.ts';
import type { Database, Runner } from '../db/database.ts';
import { aboutSecret } from '../db/sealed-values.ts';
import * as store from '../db/secrets.ts';
import { lookAtHolders } from '../db/secret-redeliveries.ts';
import { seesWorkspace } from '../db/workspaces.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { type Authority, changeAs } from './authority.ts';
import { newId } from './secrets.ts';
import type { Vault } from './vault.ts';

/** A workspace, null for the account, undefined for the key's own scope. */
type ScopeWish = string | null | undefined;

export class StoredSecrets {
  readonly #database: Database;
  readonly #vault: Vault;
  readonly #fleet: Fleet;

  constructor(database: Database, vault: Vault, fleet: Fleet) {
    this.#database = database;
    this.#vault = vault;
    this.#fleet = fleet;
  }

  async list(authority: Authority, wish: ScopeWish): Promise<SecretList> {
    const scope = scopeOf(authority, wish);
    await requireWorkspace(this.#database, scope);
    return {
      secrets: (await store.listSecrets(this.#database, scope)).map(secretOf),
      // Hosts deliver. Without any there is no computer to bind a secret to either.
      delivery: (await this.#fleet.hosts()).length > 0,
      limits: {
        name_max_chars: limits.secretName,
        value_max_bytes: limits.secretValue,
        active_per_account: limits.secretsActive,
        created_per_account: limits.secretsEver,
      },
    };
  }

  async create(
    authority: Authority,
    wish: { name: string; value: string; workspace_id?: ScopeWish },
  ): Promise<Secret> {
    const scope = scopeOf(authority, wish.workspace_id);
    const { name } = wish;
    const id = newId('secret');
    const { revisionId, sealed } = await this.#seal(id, wish.value);
    return changeAs(this.#database, authority, 'owner', async (tx) => {
      await requireWorkspace(tx, scope);
      if (await store.isSecretNameTaken(tx, scope, name)) throw new Refusal('secret_name_taken');
      const { active, ever } = await store.countSecrets(tx, scope.accountId);
      if (active >= limits.secretsActive) {
        throw new Refusal('secret_limit', { limit: limits.secretsActive });
      }
      if (ever >= limits.secretsEver) {
        throw new Refusal('secret_lifetime_limit', { limit: limits.secretsEver });
      }
      return secretOf(await store.insertSecret(tx, scope, { id, name, revisionId, sealed }));
    });
  }

  async get(authority: Authority, id: string, wish: ScopeWish): Promise<Secret> {
    return secretOf(await find(this.#database, scopeOf(authority, wish), id));
  }

  async replace(
    authority: Authority,
    id: string,
    wish: { value: string; revision_id: string; workspace_id?: ScopeWish },
  ): Promise<Secret> {
    const scope = scopeOf(authority, wish.workspace_id);
    const { revisionId, sealed } = await this.#seal(id, wish.value);
    return changeAs(this.#database, authority, 'owner', async (tx) => {
      requireRevision(await find(tx, scope, id), wish.revision_id);
      const replaced = await store.replaceSecret(tx, id, revisionId, sealed);
      await lookAtHolders(tx, id);
      return secretOf(replaced);
    });
  }

  async delete(
    authority: Authority,
    id: string,
    wish: { revision_id: string; workspace_id?: ScopeWish },
  ): Promise<{ ok: true }> {
    const scope = scopeOf(authority, wish.workspace_id);
    await changeAs(this.#database, authority, 'owner', async (tx) => {
      requireRevision(await find(tx, scope, id), wish.revision_id);
      await store.eraseSecret(tx, id);
    });
    return { ok: true };
  }

  /** Before the transaction: while the keyring's file is looked at nobody holds the account's row. */
  async #seal(id: string, value: string): Promise<{ revisionId: string; sealed: Buffer }> {
    const revisionId = newId('secretRevision');
    const plain = Buffer.from(value, 'utf8');
    return { revisionId, sealed: await this.#vault.seal(plain, aboutSecret(id, revisionId)) };
  }
}

/** A confined key never reaches beyond its workspace, and says so rather than looking elsewhere. */
function scopeOf(authority: Authority, wish: ScopeWish): store.SecretScope {
  const { accountId, workspaceId } = authority;
  if (workspaceId !== null && wish !== undefined && wish !== workspaceId) {
    throw new Refusal('secret_scope_refused');
  }
  return { accountId, workspaceId: wish ?? workspaceId };
}

async function requireWorkspace(db: Runner, scope: store.SecretScope): Promise<void> {
  const { workspaceId } = scope;
  if (workspaceId !== null && !(await seesWorkspace(db, scope, workspaceId))) {
    throw new Refusal('secret_workspace_unknown');
  }
}

async function find(db: Runner, scope: store.SecretScope, id: string): Promise<store.SecretRow> {
  const { workspaceId } = scope;
  const possible = isId('secret', id) && (workspaceId === null || isId('workspace', workspaceId));
  const row = possible ? await store.findSecret(db, scope, id) : undefined;
  if (row === undefined) throw new Refusal('secret_unknown');
  return row;
}

function requireRevision(row: store.SecretRow, revisionId: string): void {
  if (row.revision_id !== revisionId) throw new Refusal('secret_stale');
}

function secretOf(row: store.SecretRow): Secret {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
  };
}
