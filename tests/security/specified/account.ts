// The account: Part 4 Account, wire-account section 4.

import assert from 'node:assert/strict';
import { type Specified, usual } from './shape.ts';

export const accountOperations: Record<string, Specified> = {
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
};
