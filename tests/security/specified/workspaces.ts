// Workspaces: Part 4 Workspaces.

import assert from 'node:assert/strict';
import { sql } from '../../../packages/server/db/database.ts';
import { type Caller, giveKey, giveWorkspace, newName } from '../callers.ts';
import { assertRevoked, ids, idsIn } from './proofs.ts';
import { type Specified, usual } from './shape.ts';

export const workspaceOperations: Record<string, Specified> = {
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
          parameters: { id: world.home },
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
            parameters: { id },
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
            parameters: { id },
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
          parameters: { id: world.home },
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
};

/** Its own for a confined key, which is refused all the same; otherwise one that nobody else needs. */
async function workspaceFor({ key, world }: Caller): Promise<string> {
  return key.confinedTo ?? giveWorkspace(world.service, world.accountId);
}

const workspacesOf = sql('SELECT id FROM workspaces WHERE account_id = $1 ORDER BY seq');
const nameOf = sql('SELECT name FROM workspaces WHERE id = $1 AND account_id = $2');

async function assertNamed(world: Caller['world'], id: string, name: string): Promise<void> {
  const rows = await world.service.database.run(nameOf, [id, world.accountId]);
  assert.deepEqual(rows, [{ name }]);
}
