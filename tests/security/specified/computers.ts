// Computers and their lifecycle: wire-computers sections 2 to 7, Part 4 Workspaces, Part 8.

import assert from 'node:assert/strict';
import { sql } from '../../../packages/server/db/database.ts';
import { until } from '../../support/until.ts';
import { type Caller, newName } from '../callers.ts';
import { ids, idsIn } from './proofs.ts';
import { type Call, type Specified, usual } from './shape.ts';

const one = { ...usual, path: '/computers/{id}', role: 'member', cost: 10 } as const;
const both = ['computers', 'operations'];

export const computerOperations: Record<string, Specified> = {
  listComputers: {
    ...usual,
    method: 'GET',
    path: '/computers',
    role: 'viewer',
    cost: 5,
    calls: [
      {
        prepare: async ({ key, world }) => ({
          changes: [],
          async proves({ body }) {
            const seen = [world.accountId, key.confinedTo];
            assert.deepEqual(idsIn(body), await ids(world, computersOf, seen));
          },
        }),
      },
    ],
  },
  createComputer: {
    ...usual,
    method: 'POST',
    path: '/computers',
    role: 'member',
    needsVerifiedEmail: true,
    cost: 100,
    status: 201,
    calls: [
      {
        prepare: async (who) => ({
          json: { cpu: 1, ram_mb: 512, start: false },
          changes: both,
          proves: async ({ body: { id } }) => {
            const row = await rowOf(who, id);
            assert.deepEqual(row, { workspace_id: who.key.confinedTo, state: 'live' });
            await who.world.service.host.instanceOf(id);
          },
        }),
      },
    ],
  },
  getComputer: {
    ...usual,
    method: 'GET',
    path: '/computers/{id}',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ holder, world: { shared } }) => ({
          parameters: { id: shared.running },
          changes: [],
          proves({ body }) {
            const controls = holder.role !== 'viewer';
            assert.equal(body.id, shared.running);
            assert.equal(typeof body.vnc.view_token, 'string');
            for (const credential of [body.vnc.token, body.url, body.terminal_url]) {
              assert.equal(typeof credential, controls ? 'string' : 'undefined');
            }
          },
        }),
      },
    ],
  },
  changeComputer: {
    ...one,
    method: 'PATCH',
    calls: [
      {
        async prepare({ world: { shared } }) {
          const name = newName();
          return {
            parameters: { id: shared.running },
            json: { name },
            changes: ['computers'],
            proves: ({ body }) => assert.equal(body.name, name),
          };
        },
      },
    ],
  },
  deleteComputer: {
    ...one,
    method: 'DELETE',
    calls: [
      {
        async prepare(who) {
          const id = await ownComputer(who, false);
          return {
            parameters: { id },
            changes: both,
            async proves() {
              assert.deepEqual((await rowOf(who, id))?.state, 'deleted');
              assert.ok(!(await who.world.service.host.instances()).has(id));
            },
          };
        },
      },
    ],
  },
  startComputer: { ...one, ...acting('start', false, 'running') },
  stopComputer: { ...one, ...acting('stop', true, 'stopped') },
  suspendComputer: { ...one, ...acting('suspend', true, 'suspended') },
  restartComputer: { ...one, ...acting('restart', true, 'running') },
  cloneComputer: {
    ...one,
    method: 'POST',
    path: '/computers/{id}/clone',
    needsVerifiedEmail: true,
    cost: 100,
    status: 201,
    calls: [
      {
        prepare: async (who) => ({
          parameters: { id: who.world.shared.stopped },
          json: {},
          changes: both,
          async proves({ body }) {
            // Its operation is settled by being read.
            await until('the copy is made', async () => {
              const operation = await who.send('GET', `/operations/${body.operation_id}`);
              return operation.body.state === 'succeeded';
            });
            assert.equal((await rowOf(who, body.id))?.workspace_id, who.world.home);
          },
        }),
      },
    ],
  },
  moveComputerToWorkspace: {
    ...usual,
    method: 'PUT',
    path: '/computers/{id}/workspace',
    role: 'member',
    confinedKeys: 'refused',
    calls: [
      {
        async prepare(who) {
          const id = await ownComputer(who, false);
          return {
            parameters: { id },
            json: { workspace_id: null },
            changes: ['computer_moves', 'computers'],
            proves: async () => assert.equal((await rowOf(who, id))?.workspace_id, null),
          };
        },
      },
    ],
  },
};

/** Bound secrets: wire-account section 3. */
export const computerSecretOperations: Record<string, Specified> = {
  getComputerSecrets: {
    ...usual,
    method: 'GET',
    path: '/computers/{id}/secrets',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world }) => ({
          parameters: { id: world.shared.stopped },
          changes: [],
          proves: ({ body }) => assert.deepEqual(body, { secrets: [], version: 0 }),
        }),
      },
    ],
  },
  putComputerSecrets: {
    ...usual,
    method: 'PUT',
    path: '/computers/{id}/secrets',
    role: 'member',
    calls: [
      {
        async prepare(who) {
          const id = await ownComputer(who, false);
          const secrets = [
            { secret_id: who.world.secrets.account, env: 'A' },
            { secret_id: who.world.secrets.home, file: 'b' },
          ];
          return {
            parameters: { id },
            json: { secrets },
            changes: ['computer_secrets', 'secret_bindings'],
            proves({ body }) {
              const bound = (list: typeof secrets) => list.map(({ secret_id }) => secret_id);
              assert.deepEqual(bound(body.secrets), bound(secrets));
            },
          };
        },
      },
    ],
  },
};

function acting(
  verb: string,
  runs: boolean,
  then: string,
): { method: string; path: string; calls: Call[] } {
  const call: Call = {
    async prepare(who) {
      const id = await ownComputer(who, runs);
      return {
        parameters: { id },
        changes: both,
        async proves() {
          const seen = await who.world.service.host.near.computer(id);
          assert.equal(seen?.status, then);
        },
      };
    },
  };
  return { method: 'POST', path: `/computers/{id}/${verb}`, calls: [call] };
}

/** One that nobody else needs; whoever is refused changes nothing, so that any will do. */
async function ownComputer({ holder, world }: Caller, start: boolean): Promise<string> {
  const { service, accountId, home, shared, state } = world;
  const admitted = state === 'plain' || state === 'e-mail unverified';
  if (!admitted || holder.role === 'viewer') return shared.running;
  const wish = { account_id: accountId, workspace_id: home, start };
  return service.host.give(service.database, wish);
}

const computersOf = sql(`
  SELECT id FROM computers
  WHERE account_id = $1 AND ($2::text IS NULL OR workspace_id = $2) AND state = 'live'
  ORDER BY seq`);
const row = sql('SELECT workspace_id, state FROM computers WHERE id = $1 AND account_id = $2');

async function rowOf({ world }: Caller, id: string) {
  const values = [id, world.accountId];
  type Row = { workspace_id: string | null; state: string };
  return (await world.service.database.run<Row>(row, values))[0];
}
