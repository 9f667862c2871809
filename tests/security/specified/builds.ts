// Builds: Part 4 Builds, Part 6.3, Part 8. Account-wide keys alone; reading for everybody, building for members.

import assert from 'node:assert/strict';
import { newId } from '../../../packages/server/app/secrets.ts';
import { sql } from '../../../packages/server/db/database.ts';
import { until } from '../../support/until.ts';
import type { Caller } from '../callers.ts';
import { ids, idsIn } from './proofs.ts';
import { type Prepared, type Specified, usual } from './shape.ts';

const read = { ...usual, method: 'GET', role: 'viewer', confinedKeys: 'refused' } as const;

export const buildOperations: Record<string, Specified> = {
  listBuilds: {
    ...read,
    path: '/builds',
    cost: 5,
    calls: [
      {
        async prepare({ world }) {
          await failedBuild(world);
          return {
            changes: [],
            async proves({ body }) {
              assert.deepEqual(idsIn(body), await ids(world, all, [world.accountId]));
            },
          };
        },
      },
    ],
  },
  createBuild: {
    ...read,
    method: 'POST',
    path: '/builds',
    role: 'member',
    cost: 5,
    status: 202,
    calls: [
      {
        async prepare({ world }) {
          builds += 1;
          return {
            raw: JSON.stringify(documentOf(world.accountId, builds)),
            changes: ['build_requests', 'builds'],
            async proves({ body }) {
              const { database } = world.service;
              await until('it is built', async () => {
                const [row] = await database.run<{ status: string }>(statusOf, [body.id]);
                return row?.status === 'succeeded';
              });
            },
          };
        },
      },
    ],
  },
  getBuild: {
    ...read,
    path: '/builds/{id}',
    calls: [on((id) => ({ proves: ({ body }) => assert.equal(body.id, id) }))],
  },
  getBuildProgress: {
    ...read,
    path: '/builds/{id}/progress',
    calls: [on((id) => ({ proves: ({ body }) => assert.equal(body.id, id) }))],
  },
  streamBuild: {
    ...read,
    path: '/builds/{id}/events',
    calls: [on((id) => ({ proves: ({ text }) => assert.ok(text.includes(`"id":"${id}"`)) }))],
  },
};

let builds = 0;

function documentOf(namespace: string, n: number): object {
  return {
    apiVersion: 'cubicle/v1',
    kind: 'Template',
    metadata: { namespace, name: 'matrix', version: '1.0.0' },
    spec: {
      os: 'linux',
      // Each of its own, so that none is removed for another.
      family: `golden-${namespace}-${n}`,
      from: 'system/base',
      build: [{ run: `echo ${n}` }],
    },
  };
}

const all = sql('SELECT id FROM builds WHERE account_id = $1 AND (kept OR status = $$failed$$)');
const statusOf = sql('SELECT status FROM builds WHERE id = $1');
const insertFailed = sql(`
  INSERT INTO builds (id, account_id, ref, doc_digest, build_key, family, parent, disk_gb, host_id, steps,
    status, phase, kept, held_until, finished_at, error)
  SELECT $1, $2, $3, '', '', '', 'base', 10, h.id, '[]', 'failed', 'failed', false, now(), now(), 'no'
  FROM hosts h LIMIT 1 RETURNING id`);

/** Straight into the table; one for each world is enough. */
async function failedBuild({ service, accountId }: Caller['world']): Promise<string> {
  const known = given.get(accountId);
  if (known !== undefined) return known;
  const id = newId('build');
  given.set(accountId, id);
  await service.database.run(insertFailed, [id, accountId, `${accountId}/matrix@0.0.1`]);
  return id;
}
const given = new Map<string, string>();

function on(call: (id: string) => Pick<Prepared, 'proves'>) {
  return {
    async prepare({ world }: Caller): Promise<Prepared> {
      const id = await failedBuild(world);
      return { parameters: { id }, changes: [], ...call(id) };
    },
  };
}
