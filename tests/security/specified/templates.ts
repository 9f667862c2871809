// Templates: Part 4 Templates, wire-account section 1. A confined key lists, reads `system` and validates.

import assert from 'node:assert/strict';
import { sql } from '../../../packages/server/db/database.ts';
import { insertTemplate } from '../../../packages/server/db/templates.ts';
import { canonicalJson, digestOf } from '../../../packages/server/documents/canonical.ts';
import type { Caller } from '../callers.ts';
import { type Specified, usual } from './shape.ts';

export const templateOperations: Record<string, Specified> = {
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
  getTemplateSchema: {
    ...usual,
    method: 'GET',
    path: '/templates/schema',
    role: 'viewer',
    calls: [
      {
        prepare: async ({ world }) => ({
          changes: [],
          proves: ({ body }) => assert.equal(body.$id, `${world.service.baseUrl}/templates/schema`),
        }),
      },
    ],
  },
  validateTemplate: {
    ...usual,
    method: 'POST',
    path: '/templates/validate',
    role: 'viewer',
    cost: 5,
    calls: [
      {
        // Neither the namespace nor whether the reference is taken matters to it.
        prepare: async () => ({
          raw: JSON.stringify(documentOf('acc-000000000000', 'any')),
          changes: [],
          proves: ({ body }) => assert.equal(body.valid, true),
        }),
      },
    ],
  },
  publishTemplate: {
    ...usual,
    method: 'POST',
    path: '/templates',
    role: 'member',
    confinedKeys: 'refused',
    cost: 5,
    status: 201,
    calls: [
      {
        async prepare({ world }) {
          const name = newTemplateName();
          return {
            raw: JSON.stringify(documentOf(world.accountId, name)),
            changes: ['templates'],
            async proves({ body }) {
              assert.equal(body.ref, `${world.accountId}/${name}@1.0.0`);
              assert.deepEqual(await retiredOf(world, name), [{ retired: false }]);
            },
          };
        },
      },
    ],
  },
  getTemplate: {
    ...usual,
    method: 'GET',
    path: '/templates/{namespace}/{name}',
    role: 'viewer',
    calls: [
      {
        prepare: async () => ({
          parameters: { namespace: 'system', name: 'base' },
          changes: [],
          proves: ({ body }) => assert.equal(body.ref, 'system/base@1.0.0'),
        }),
      },
    ],
  },
  retireTemplate: {
    ...usual,
    method: 'DELETE',
    path: '/templates/{namespace}/{name}',
    role: 'member',
    confinedKeys: 'refused',
    calls: [
      {
        async prepare({ world }) {
          const name = newTemplateName();
          await giveTemplate(world, name);
          return {
            parameters: { namespace: world.accountId, name },
            changes: ['templates'],
            async proves({ body }) {
              assert.deepEqual(body.retired, [`${world.accountId}/${name}@1.0.0`]);
              assert.deepEqual(await retiredOf(world, name), [{ retired: true }]);
            },
          };
        },
      },
    ],
  },
};

let names = 0;

function newTemplateName(): string {
  names += 1;
  return `t${names}`;
}

function documentOf(namespace: string, name: string): object {
  return {
    apiVersion: 'cubicle/v1',
    kind: 'Template',
    metadata: { namespace, name, version: '1.0.0' },
    spec: { os: 'linux' },
  };
}

/** Straight into the table. */
async function giveTemplate({ service, accountId }: Caller['world'], name: string): Promise<void> {
  const document = canonicalJson(documentOf(accountId, name));
  const template = { name, version: '1.0.0', document, doc_digest: digestOf(document) };
  await insertTemplate(service.database, accountId, template);
}

const retired = sql(`
  SELECT retired_at IS NOT NULL AS retired FROM templates WHERE account_id = $1 AND name = $2`);

function retiredOf({ service, accountId }: Caller['world'], name: string): Promise<object[]> {
  return service.database.run(retired, [accountId, name]);
}
