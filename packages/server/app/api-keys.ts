// Who am I, and the holder's own API keys: wire-account section 4.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { ApiKey, MintedApiKey, Whoami } from '@cubicle/contract/resources/api-keys.ts';
import { findAccount, findUserById } from '../db/accounts.ts';
import * as store from '../db/api-keys.ts';
import { type Database, violated } from '../db/database.ts';
import { listWorkspaces } from '../db/workspaces.ts';
import { type Authority, changeAs, type Gatekeeper } from './authority.ts';
import type { KeyUses } from './key-uses.ts';
import { mintKey, newId } from './secrets.ts';
import { workspaceOf } from './workspaces.ts';

export interface KeyWish {
  readonly name?: string | undefined;
  readonly workspace_id?: string | null | undefined;
  readonly manage_keys?: boolean | undefined;
}

export class ApiKeys {
  readonly #database: Database;
  readonly #gatekeeper: Gatekeeper;
  readonly #uses: KeyUses;

  constructor(database: Database, gatekeeper: Gatekeeper, uses: KeyUses) {
    this.#database = database;
    this.#gatekeeper = gatekeeper;
    this.#uses = uses;
  }

  /** A confined key learns no e-mail, name or plan. */
  async whoami(authority: Authority): Promise<Whoami> {
    const { accountId, userId, keyId, workspaceId, role } = authority;
    await this.#uses.write();
    const [user, account, key, workspaces] = await Promise.all([
      findUserById(this.#database, userId),
      findAccount(this.#database, accountId),
      store.findApiKey(this.#database, authority, keyId),
      workspaceId === null ? [] : listWorkspaces(this.#database, authority),
    ]);
    // Between the door and here the key can have gone.
    if (user === undefined || account === undefined || key === undefined) {
      throw new Refusal('credential_revoked');
    }
    const open = workspaceId === null;
    const workspace = workspaces[0];
    return {
      user: { id: user.id, email: open ? user.email : null, name: open ? user.name : null },
      account: {
        id: account.id,
        name: open ? account.name : null,
        plan: open && account.plan_id !== 'none' ? account.plan_id : null,
        status: account.suspended ? 'suspended' : 'active',
      },
      role,
      workspace: workspace === undefined ? null : workspaceOf(workspace),
      key: apiKeyOf(key),
    };
  }

  async list(authority: Authority): Promise<ApiKey[]> {
    requireManager(authority);
    await this.#uses.write();
    return (await store.listApiKeys(this.#database, authority)).map(apiKeyOf);
  }

  async create(authority: Authority, wish: KeyWish): Promise<MintedApiKey> {
    requireManager(authority);
    if (wish.manage_keys === true) throw new Refusal('key_manager_refused');
    const workspaceId = scopeWished(authority, wish.workspace_id ?? null);
    const minted = mintKey();
    const row = await this.#change(authority, async (tx) => {
      if ((await store.countApiKeys(tx, authority)) >= limits.apiKeysPerHolder) {
        throw new Refusal('api_key_limit', { limit: limits.apiKeysPerHolder });
      }
      return store.insertApiKey(tx, {
        id: newId('apiKey'),
        hash: minted.hash,
        prefix: minted.prefix,
        name: wish.name ?? null,
        accountId: authority.accountId,
        userId: authority.userId,
        workspaceId,
        manageKeys: false,
        mintedByKeyId: authority.keyId,
      });
    });
    return { ...apiKeyOf(row), raw: minted.raw };
  }

  /** A key may always revoke itself. */
  async revoke(authority: Authority, id: string): Promise<{ ok: true }> {
    if (id !== authority.keyId) requireManager(authority);
    if (!isId('apiKey', id)) throw new Refusal('api_key_unknown');
    await this.#change(authority, async (tx) => {
      if (!(await store.revokeApiKey(tx, authority, id))) throw new Refusal('api_key_unknown');
    });
    this.#gatekeeper.forget('key', id);
    return { ok: true };
  }

  async #change<Result>(
    authority: Authority,
    work: Parameters<typeof changeAs<Result>>[3],
  ): Promise<Result> {
    try {
      return await changeAs(this.#database, authority, 'member', work);
    } catch (error) {
      if (violated(error) === 'api_keys_workspace') throw new Refusal('workspace_unknown');
      throw error;
    }
  }
}

function requireManager(authority: Authority): void {
  if (!authority.manageKeys) throw new Refusal('key_management_refused');
}

/** Without a wish, the caller's own scope; a confined key never reaches beyond its own. */
function scopeWished(authority: Authority, wished: string | null): string | null {
  if (authority.workspaceId !== null) {
    if (wished !== null && wished !== authority.workspaceId) throw new Refusal('key_scope_refused');
    return authority.workspaceId;
  }
  if (wished !== null && !isId('workspace', wished)) throw new Refusal('workspace_unknown');
  return wished;
}

function apiKeyOf(row: store.ApiKeyRow): ApiKey {
  return {
    ...row,
    created_at: row.created_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
  };
}
