// What one account must hold, kept from the answers alone: at the end the database must say the same.

import assert from 'node:assert/strict';
import { routes } from '../../packages/contract/routes.ts';
import { type Database, sql } from '../../packages/server/db/database.ts';

/** What a request would do, were it obeyed. */
export type Aim =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'list workspaces' }
  | { readonly kind: 'create'; readonly name: string | undefined }
  | { readonly kind: 'rename'; readonly id: string; readonly name: string | undefined }
  | { readonly kind: 'delete'; readonly id: string }
  | { readonly kind: 'mint' }
  | { readonly kind: 'revoke'; readonly id: string };

const workspacesOf = sql('SELECT id, name FROM workspaces WHERE account_id = $1');
const keysOf = sql('SELECT id, workspace_id FROM api_keys WHERE account_id = $1');

export class Model {
  readonly accountId: string;
  /** Names by id. */
  readonly workspaces = new Map<string, string>();
  /** The workspace a key is confined to, by the key's id. */
  readonly keys = new Map<string, string | null>();
  /** Made by requests, so requests may take them away again. */
  readonly madeWorkspaces = new Set<string>();
  readonly madeKeys = new Set<string>();

  private constructor(accountId: string) {
    this.accountId = accountId;
  }

  static async of(database: Database, accountId: string): Promise<Model> {
    const model = new Model(accountId);
    const held = await read(database, accountId);
    for (const { id, name } of held.workspaces) model.workspaces.set(id, name);
    for (const { id, workspace_id } of held.keys) model.keys.set(id, workspace_id);
    return model;
  }

  /** Takes in an answer of success to a request with this aim. */
  obeyed(aim: Aim, body: unknown): void {
    switch (aim.kind) {
      case 'create': {
        const { id, name } = routes.createWorkspace.answer.schema.parse(body);
        assert.ok(!this.workspaces.has(id), 'a new id');
        if (aim.name !== undefined) assert.equal(name, aim.name.trim());
        this.workspaces.set(id, name);
        this.madeWorkspaces.add(id);
        return;
      }
      case 'rename': {
        const { id, name } = routes.renameWorkspace.answer.schema.parse(body);
        assert.equal(id, aim.id);
        if (aim.name !== undefined) assert.equal(name, aim.name.trim());
        assert.ok(this.workspaces.has(id), 'renamed what there is');
        this.workspaces.set(id, name);
        return;
      }
      case 'delete': {
        const confined = [...this.keys].filter(([, workspaceId]) => workspaceId === aim.id);
        assert.deepEqual(body, { ok: true, revoked_keys: confined.length });
        for (const [id] of confined) this.#dropKey(id);
        assert.ok(this.workspaces.delete(aim.id), 'deleted what there is');
        this.madeWorkspaces.delete(aim.id);
        return;
      }
      case 'mint': {
        const { id, workspace_id } = routes.createApiKey.answer.schema.parse(body);
        assert.ok(!this.keys.has(id), 'a new id');
        this.keys.set(id, workspace_id);
        this.madeKeys.add(id);
        return;
      }
      case 'revoke':
        assert.deepEqual(body, { ok: true });
        assert.ok(this.keys.has(aim.id), 'revoked what there is');
        this.#dropKey(aim.id);
        return;
      case 'list workspaces':
        return;
      case 'nothing':
        assert.fail(`a change that was not asked for: ${JSON.stringify(body)}`);
    }
  }

  /** What a listing must say while nothing else is under way. */
  assertListed(body: unknown): void {
    const listed = routes.listWorkspaces.answer.schema.parse(body);
    assertSame(
      listed.map(({ id, name }) => [id, name]),
      this.workspaces,
      'the listing tells what the answers told',
    );
  }

  async assertStored(database: Database): Promise<void> {
    const held = await read(database, this.accountId);
    assertSame(
      held.workspaces.map(({ id, name }) => [id, name]),
      this.workspaces,
      'the workspaces are those that the answers told of',
    );
    assertSame(
      held.keys.map(({ id, workspace_id }) => [id, workspace_id]),
      this.keys,
      'the keys are those that the answers told of',
    );
  }

  #dropKey(id: string): void {
    this.keys.delete(id);
    this.madeKeys.delete(id);
  }
}

/** Pipelined creations may be stored in another order than they are answered, so order is left out. */
function assertSame<Value>(
  held: readonly [id: string, value: Value][],
  told: ReadonlyMap<string, Value>,
  message: string,
): void {
  const sorted = (rows: Iterable<[string, Value]>) =>
    Object.fromEntries([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  assert.deepEqual(sorted(held), sorted(told), message);
}

async function read(database: Database, accountId: string) {
  const [workspaces, keys] = await Promise.all([
    database.run<{ id: string; name: string }>(workspacesOf, [accountId]),
    database.run<{ id: string; workspace_id: string | null }>(keysOf, [accountId]),
  ]);
  return { workspaces, keys };
}
