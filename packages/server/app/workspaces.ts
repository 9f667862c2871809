// Workspaces: Part 4, Workspaces 1 to 9.

import { Refusal } from '@cubicle/contract/errors.ts';
import { isId } from '@cubicle/contract/ids.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Workspace, WorkspaceMember } from '@cubicle/contract/resources/workspaces.ts';
import { revokeConfinedKeys } from '../db/api-keys.ts';
import { type Database, violated } from '../db/database.ts';
import { countSecretsIn } from '../db/secrets.ts';
import { deleteConfinedWebhooks } from '../db/webhooks.ts';
import * as store from '../db/workspaces.ts';
import { type Authority, changeAs, type Gatekeeper } from './authority.ts';
import type { Inventory } from './inventory.ts';
import { newId } from './secrets.ts';

export class Workspaces {
  readonly #database: Database;
  readonly #gatekeeper: Gatekeeper;
  readonly #inventory: Inventory;
  readonly #find: ReturnType<typeof store.workspaceFinder>;

  constructor(database: Database, gatekeeper: Gatekeeper, inventory: Inventory) {
    this.#database = database;
    this.#gatekeeper = gatekeeper;
    this.#inventory = inventory;
    this.#find = store.workspaceFinder(database);
  }

  async list(authority: Authority): Promise<Workspace[]> {
    return (await store.listWorkspaces(this.#database, authority)).map(workspaceOf);
  }

  async get(authority: Authority, id: string): Promise<Workspace> {
    const row = isId('workspace', id) ? await this.#find({ scope: authority, id }) : undefined;
    if (row === undefined) throw new Refusal('workspace_unknown');
    return workspaceOf(row);
  }

  async create(authority: Authority, name: string): Promise<Workspace> {
    const { accountId } = authority;
    return this.#change(authority, async (tx) => {
      const held = await store.countWorkspaces(tx, accountId);
      if (held >= limits.workspacesPerAccount) {
        throw new Refusal('workspace_limit', { limit: limits.workspacesPerAccount });
      }
      const workspace = { id: newId('workspace'), accountId, name };
      return workspaceOf(await store.insertWorkspace(tx, workspace));
    });
  }

  async rename(authority: Authority, id: string, name: string): Promise<Workspace> {
    if (!isId('workspace', id)) throw new Refusal('workspace_unknown');
    return this.#change(authority, async (tx) => {
      const row = await store.renameWorkspace(tx, authority.accountId, id, name);
      if (row === undefined) throw new Refusal('workspace_unknown');
      return workspaceOf(row);
    });
  }

  /** Rules 5 and 6: only when empty; the keys and webhooks confined to it go in the same step. */
  async delete(authority: Authority, id: string): Promise<{ ok: true; revoked_keys: number }> {
    const { accountId } = authority;
    await this.get(authority, id);
    const revoked = await this.#change(authority, async (tx) => {
      const computers = await this.#inventory.computersIn(accountId, id);
      if (computers === undefined) throw new Refusal('fleet_unconfirmed');
      if (computers > 0) {
        const count = computers === 1 ? '1 computer' : `${computers} computers`;
        throw new Refusal('workspace_has_computers', { count });
      }
      const secrets = await countSecretsIn(tx, accountId, id);
      if (secrets > 0) {
        const count = secrets === 1 ? '1 secret' : `${secrets} secrets`;
        throw new Refusal('workspace_has_secrets', { count });
      }
      const keys = await revokeConfinedKeys(tx, accountId, id);
      await deleteConfinedWebhooks(tx, accountId, id);
      const gone = await store.deleteWorkspace(tx, accountId, id);
      if (!gone) throw new Refusal('workspace_unknown');
      return keys;
    });
    for (const key of revoked) this.#gatekeeper.forget('key', key);
    return { ok: true, revoked_keys: revoked.length };
  }

  /** Rule 9: workspaces do not divide people. */
  async members(authority: Authority, id: string): Promise<WorkspaceMember[]> {
    await this.get(authority, id);
    const rows = await store.listMembers(this.#database, authority);
    return rows.map((row) => ({ ...row, accepted_at: row.accepted_at.toISOString() }));
  }

  async #change<Result>(
    authority: Authority,
    work: Parameters<typeof changeAs<Result>>[3],
  ): Promise<Result> {
    try {
      return await changeAs(this.#database, authority, 'owner', work);
    } catch (error) {
      if (violated(error) === 'workspaces_name_taken') throw new Refusal('workspace_name_taken');
      throw error;
    }
  }
}

export function workspaceOf(row: store.WorkspaceRow): Workspace {
  return { id: row.id, name: row.name, created_at: row.created_at.toISOString() };
}
