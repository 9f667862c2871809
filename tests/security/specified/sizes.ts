// Sizes and templates: wire-computers section 1, Part 4 Templates.

import assert from 'node:assert/strict';
import { type Specified, usual } from './shape.ts';

export const sizeOperations: Record<string, Specified> = {
  listSizes: {
    ...usual,
    method: 'GET',
    path: '/sizes',
    role: 'viewer',
    calls: [
      {
        prepare: async () => ({
          changes: [],
          proves: ({ body }) => assert.ok(body.some(({ id }: { id: string }) => id === 'large')),
        }),
      },
    ],
  },
  listTemplates: {
    ...usual,
    method: 'GET',
    path: '/templates',
    role: 'viewer',
    cost: 5,
    calls: [
      {
        prepare: async () => ({
          changes: [],
          proves: ({ body }) => assert.equal(body[0].name, 'base'),
        }),
      },
    ],
  },
};
