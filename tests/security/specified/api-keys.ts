// API keys: Part 5 rules 4 and 6, wire-account section 4.

import assert from 'node:assert/strict';
import { hashKey } from '../../../packages/server/app/secrets.ts';
import { sql } from '../../../packages/server/db/database.ts';
import { giveKey } from '../callers.ts';
import { assertRevoked, ids, idsIn } from './proofs.ts';
import { type Specified, usual } from './shape.ts';

export const apiKeyOperations: Record<string, Specified> = {
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
            parameters: { id: other.id },
            changes: ['api_keys', 'revoked_keys'],
            proves: () => assertRevoked(who, other.raw),
          };
        },
      },
      {
        // A key may revoke itself, whether it manages keys or not.
        prepare: async (who) => ({
          parameters: { id: who.key.id },
          changes: ['api_keys', 'revoked_keys'],
          proves: () => assertRevoked(who, who.key.raw),
        }),
      },
    ],
  },
};

const keysOf = sql(`
  SELECT id FROM api_keys
  WHERE account_id = $1 AND user_id = $2 AND ($3::text IS NULL OR workspace_id = $3)
  ORDER BY seq DESC`);
const keyRow = sql(`
  SELECT encode(hash, 'hex') AS hash, account_id, user_id, workspace_id, manage_keys, minted_by_key_id
  FROM api_keys WHERE id = $1`);
