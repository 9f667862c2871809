// What the specification says of every operation, by its id. Written from its words (Part 4 Account and
// Workspaces, Parts 5 and 8, wire-account section 4), never from the contract's own fields: the matrix
// holds the one against the other. A new route is described here before its tests can pass.

import assert from 'node:assert/strict';
import { hashKey } from '../../packages/server/app/secrets.ts';
import { sql } from '../../packages/server/db/database.ts';
import type { Answer } from '../support/client.ts';
import { type Caller, giveKey, giveWorkspace, newName, type Role } from './callers.ts';

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
  readonly id?: string;
  readonly json?: unknown;
  /** The tables that its success changes; no others, and a refusal none. */
  readonly changes: readonly string[];
  /** Holds after its success. */
  proves(answer: Answer): Promise<void> | void;
}

const read = { needsVerifiedEmail: false, cost: 1, status: 200, changes: [] as string[] };
const usual = { confinedKeys: 'admitted', whileSuspended: 'refused', ...read } as const;

export const specified: Record<string, Specified> = {
  getAccount: {
    ...usual,
    method: 'GET',
    path: '/account',
    role: 'viewer',
    whileSuspended: 'answers',
    cost: 10,
    calls: [
      {
        prepare: async ({ holder, key, world }) => ({
          changes: [],
          proves({ body, text }) {
            assert.equal(body.scope, 'account');
            for (const identity of [world.accountId, world.home, key.id, holder.userId, '@']) {
              assert.ok(!text.includes(identity), `the quota names ${identity}`);
            }
          },
        }),
      },
    ],
  },
  getWhoami: {
    ...usual,
    method: 'GET',
    path: '/whoami',
    role: 'viewer',
    whileSuspended: 'answers',
    calls: [
      {
        prepare: async ({ holder, key, world }) => ({
          changes: [],
          proves({ body }) {
            const open = key.confinedTo === null;
            assert.equal(body.user.id, holder.userId);
            assert.equal(body.user.email, open ? holder.email : null);
            assert.equal(body.account.id, world.accountId);
            assert.equal(body.account.plan, open ? 'swarm' : null);
            assert.equal(body.account.name, open ? 'Tests' : null);
            const suspended = world.state === 'account suspended';
            assert.equal(body.account.status, suspended ? 'suspended' : 'active');
            assert.equal(body.role, holder.role);
            assert.equal(body.workspace?.id ?? null, key.confinedTo);
            assert.equal(body.key.id, key.id);
            assert.equal(body.key.manage_keys, key.manageKeys);
          },
        }),
      },
    ],
  },
  listWorkspaces: {
    ...usual,
    method: 'GET',
    path: '/workspaces',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ key, world }) => ({
          changes: [],
          async proves({ body }) {
            const all = await ids(world, workspacesOf, [world.accountId]);
            assert.deepEqual(idsIn(body), key.confinedTo === null ? all : [key.confinedTo]);
          },
        }),
      },
    ],
  },
  createWorkspace: {
    ...usual,
    method: 'POST',
    path: '/workspaces',
    role: 'owner',
    confinedKeys: 'refused',
    calls: [
      {
        async prepare({ world }) {
          const name = newName();
          return {
            json: { name },
            changes: ['workspaces'],
            proves: async ({ body }) => assertNamed(world, body.id, name),
          };
        },
      },
    ],
  },
  getWorkspace: {
    ...usual,
    method: 'GET',
    path: '/workspaces/{id}',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world }) => ({
          id: world.home,
          changes: [],
          proves: ({ body }) => assert.equal(body.id, world.home),
        }),
      },
    ],
  },
  renameWorkspace: {
    ...usual,
    method: 'PATCH',
    path: '/workspaces/{id}',
    role: 'owner',
    confinedKeys: 'refused',
    calls: [
      {
        async prepare(who) {
          const name = newName();
          const id = await workspaceFor(who);
          return {
            id,
            json: { name },
            changes: ['workspaces'],
            proves: () => assertNamed(who.world, id, name),
          };
        },
      },
    ],
  },
  deleteWorkspace: {
    ...usual,
    method: 'DELETE',
    path: '/workspaces/{id}',
    role: 'owner',
    confinedKeys: 'refused',
    calls: [
      {
        async prepare(who) {
          const { world, holder } = who;
          const id = await workspaceFor(who);
          const doomed = { confinedTo: id, manageKeys: false };
          const { raw } = await giveKey(world.service, holder, doomed);
          return {
            id,
            changes: ['api_keys', 'revoked_keys', 'workspaces'],
            async proves({ body }) {
              assert.deepEqual(body, { ok: true, revoked_keys: 1 });
              assert.ok(!(await ids(world, workspacesOf, [world.accountId])).includes(id));
              await assertRevoked(who, raw);
            },
          };
        },
      },
    ],
  },
  listWorkspaceMembers: {
    ...usual,
    method: 'GET',
    path: '/workspaces/{id}/members',
    role: 'viewer',
    confinedKeys: 'refused',
    calls: [
      {
        prepare: async ({ world }) => ({
          id: world.home,
          changes: [],
          proves({ body }) {
            const members = new Map(
              body.map(({ user_id, role }: Record<string, string>) => [user_id, role]),
            );
            for (const { holder } of world.callers) {
              assert.equal(members.get(holder.userId), holder.role);
            }
          },
        }),
      },
    ],
  },
  listApiKeys: {
    ...usual,
    method: 'GET',
    path: '/api-keys',
    role: 'viewer',
    calls: [
      {
        needsManager: true,
        prepare: async ({ holder, key, world }) => ({
          changes: [],
          async proves({ body }) {
            const scope = [world.accountId, holder.userId, key.confinedTo];
            assert.deepEqual(idsIn(body), await ids(world, keysOf, scope));
          },
        }),
      },
    ],
  },
  createApiKey: {
    ...usual,
    method: 'POST',
    path: '/api-keys',
    role: 'member',
    needsVerifiedEmail: true,
    status: 201,
    calls: [
      {
        needsManager: true,
        prepare: async ({ holder, key, world }) => ({
          json: { name: 'minted' },
          changes: ['api_keys'],
          async proves({ body }) {
            const [row] = await world.service.database.run<object>(keyRow, [body.id]);
            assert.deepEqual(row, {
              hash: hashKey(body.raw),
              account_id: world.accountId,
              user_id: holder.userId,
              workspace_id: key.confinedTo,
              manage_keys: false,
              minted_by_key_id: key.id,
            });
            assert.equal((await world.service.as(body.raw).get('/whoami')).status, 200);
          },
        }),
      },
    ],
  },
  revokeApiKey: {
    ...usual,
    method: 'DELETE',
    path: '/api-keys/{id}',
    role: 'member',
    calls: [
      {
        needsManager: true,
        async prepare(who) {
          const other = await giveKey(who.world.service, who.holder, {
            confinedTo: who.key.confinedTo,
            manageKeys: true,
          });
          return {
            id: other.id,
            changes: ['api_keys', 'revoked_keys'],
            proves: () => assertRevoked(who, other.raw),
          };
        },
      },
      {
        // A key may revoke itself, whether it manages keys or not.
        prepare: async (who) => ({
          id: who.key.id,
          changes: ['api_keys', 'revoked_keys'],
          proves: () => assertRevoked(who, who.key.raw),
        }),
      },
    ],
  },
};

/** Its own for a confined key, which is refused all the same; otherwise one that nobody else needs. */
async function workspaceFor({ key, world }: Caller): Promise<string> {
  return key.confinedTo ?? giveWorkspace(world.service, world.accountId);
}

const workspacesOf = sql('SELECT id FROM workspaces WHERE account_id = $1 ORDER BY seq');
const keysOf = sql(`
  SELECT id FROM api_keys
  WHERE account_id = $1 AND user_id = $2 AND ($3::text IS NULL OR workspace_id = $3)
  ORDER BY seq DESC`);
const nameOf = sql('SELECT name FROM workspaces WHERE id = $1 AND account_id = $2');
const keyRow = sql(`
  SELECT encode(hash, 'hex') AS hash, account_id, user_id, workspace_id, manage_keys, minted_by_key_id
  FROM api_keys WHERE id = $1`);

async function ids(
  { service }: Caller['world'],
  statement: typeof workspacesOf,
  values: readonly unknown[],
): Promise<string[]> {
  return idsIn(await service.database.run<{ id: string }>(statement, values));
}

function idsIn(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

async function assertNamed(world: Caller['world'], id: string, name: string): Promise<void> {
  const rows = await world.service.database.run(nameOf, [id, world.accountId]);
  assert.deepEqual(rows, [{ name }]);
}

async function assertRevoked({ world }: Caller, raw: string): Promise<void> {
  const { status, body } = await world.service.as(raw).get('/whoami');
  assert.deepEqual([status, body.reason], [401, 'revoked']);
}
