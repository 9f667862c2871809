// Secrets: wire-account section 3. Reads for members, writes for owners; a confined key within its workspace.

import assert from 'node:assert/strict';
import { sql } from '../../../packages/server/db/database.ts';
import { type Caller, giveSecret, newName } from '../callers.ts';
import { ids, idsIn } from './proofs.ts';
import { type Specified, usual } from './shape.ts';

export const secretOperations: Record<string, Specified> = {
  listSecrets: {
    ...usual,
    method: 'GET',
    path: '/secrets',
    role: 'member',
    calls: [
      {
        prepare: async ({ world, key }) => ({
          changes: [],
          async proves({ body }) {
            assert.ok(idsIn(body.secrets).includes(sharedSecret(world, key)));
            const own = await ids(world, secretsOf, [world.accountId, key.confinedTo]);
            assert.deepEqual(idsIn(body.secrets), own);
          },
        }),
      },
    ],
  },
  createSecret: {
    ...usual,
    method: 'POST',
    path: '/secrets',
    role: 'owner',
    status: 201,
    calls: [
      {
        prepare: async ({ world, key }) => ({
          json: { name: newName(), value: 'a value' },
          changes: ['secrets'],
          async proves({ body }) {
            assert.equal(body.workspace_id, key.confinedTo);
            const own = await ids(world, secretsOf, [world.accountId, key.confinedTo]);
            assert.ok(own.includes(body.id));
          },
        }),
      },
    ],
  },
  getSecret: {
    ...usual,
    method: 'GET',
    path: '/secrets/{id}',
    role: 'member',
    calls: [
      {
        prepare: async ({ world, key }) => ({
          parameters: { id: sharedSecret(world, key) },
          changes: [],
          proves: ({ body }) => assert.equal(body.id, sharedSecret(world, key)),
        }),
      },
    ],
  },
  replaceSecret: {
    ...usual,
    method: 'PUT',
    path: '/secrets/{id}',
    role: 'owner',
    calls: [
      {
        async prepare(who) {
          const { id, revision_id } = await ownSecret(who);
          return {
            parameters: { id },
            json: { value: 'another', revision_id },
            changes: ['secrets'],
            proves: ({ body }) => assert.notEqual(body.revision_id, revision_id),
          };
        },
      },
    ],
  },
  deleteSecret: {
    ...usual,
    method: 'DELETE',
    path: '/secrets/{id}',
    role: 'owner',
    calls: [
      {
        async prepare(who) {
          const { id, revision_id } = await ownSecret(who);
          return {
            parameters: { id },
            query: `?revision_id=${revision_id}`,
            changes: ['secrets'],
            async proves({ body }) {
              assert.deepEqual(body, { ok: true });
              const left = await ids(who.world, secretsOf, [
                who.world.accountId,
                who.key.confinedTo,
              ]);
              assert.ok(!left.includes(id));
            },
          };
        },
      },
    ],
  },
};

/** Out of nobody's way: in the scope of the caller's key. */
function ownSecret({ world, key }: Caller): ReturnType<typeof giveSecret> {
  return giveSecret(world.service, world.accountId, key.confinedTo);
}

function sharedSecret({ secrets }: Caller['world'], key: Caller['key']): string {
  return key.confinedTo === null ? secrets.account : secrets.home;
}

const secretsOf = sql(`
  SELECT id FROM secrets
  WHERE account_id = $1 AND workspace_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL ORDER BY seq`);
