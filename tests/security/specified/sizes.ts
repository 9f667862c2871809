// Sizes: wire-computers section 1.

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
};
