// Operations: Part 4 Operations, wire-computers section 9.

import assert from 'node:assert/strict';
import { sql } from '../../../packages/server/db/database.ts';
import { ids, idsIn } from './proofs.ts';
import { type Specified, usual } from './shape.ts';

export const operationOperations: Record<string, Specified> = {
  listOperations: {
    ...usual,
    method: 'GET',
    path: '/operations',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ key, world }) => ({
          query: '?limit=100',
          changes: [],
          async proves({ body }) {
            const seen = [world.accountId, key.confinedTo];
            assert.deepEqual(idsIn(body.operations), await ids(world, operationsOf, seen));
          },
        }),
      },
    ],
  },
  getOperation: {
    ...usual,
    method: 'GET',
    path: '/operations/{id}',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world: { shared } }) => ({
          parameters: { id: shared.operation },
          changes: [],
          proves: ({ body }) =>
            assert.deepEqual([body.id, body.computer_id], [shared.operation, shared.stopped]),
        }),
      },
    ],
  },
};

const operationsOf = sql(`
  SELECT o.id FROM operations o JOIN computers c ON c.id = o.computer_id
  WHERE o.account_id = $1 AND ($2::text IS NULL OR c.workspace_id = $2)
  ORDER BY o.seq DESC LIMIT 100`);
