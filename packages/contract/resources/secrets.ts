// Secrets: values that are stored and never told again. wire-account section 3.

import { z } from 'zod';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { secretName, secretValue } from '../text.ts';
import { timestamp } from '../timestamp.ts';

const secret = z
  .strictObject({
    id: z.string().regex(idPattern('secret')),
    name: z.string(),
    workspace_id: z.string().nullable().describe('Null for an account-wide secret.'),
    revision_id: z.string().regex(idPattern('secretRevision')).describe('New with every value.'),
    created_at: timestamp,
    updated_at: timestamp.describe('When its value was last set.'),
    last_used_at: timestamp.nullable().describe('When it was last delivered.'),
  })
  .meta({ id: 'Secret' });
export type Secret = z.infer<typeof secret>;

const secretList = z
  .strictObject({
    secrets: z.array(secret),
    delivery: z
      .boolean()
      .describe('False: secrets are stored, and nothing can be bound to them here.'),
    limits: z.strictObject({
      name_max_chars: z.int(),
      value_max_bytes: z.int(),
      active_per_account: z.int(),
      created_per_account: z.int(),
    }),
  })
  .meta({ id: 'SecretList' });
export type SecretList = z.infer<typeof secretList>;

const ofScope = z
  .string()
  .optional()
  .describe('The workspace whose secrets are meant; absent: the key’s own scope.');
const inScope = z
  .string()
  .nullable()
  .optional()
  .describe('A workspace, or null for the account; absent: the key’s own scope.');

const source = 'wire-account, section 3';
const reading = { role: 'member', reach: 'scope', cost: costs.readOne, source } as const;
const writing = { ...reading, role: 'owner' } as const;
const body = { cap: limits.jsonBody };

export const secretRoutes = defineRoutes({
  listSecrets: {
    ...reading,
    method: 'GET',
    path: '/secrets',
    query: z.object({ workspace_id: ofScope }),
    answer: { status: 200, schema: secretList },
    errors: ['query_refused', 'secret_scope_refused', 'secret_workspace_unknown'],
    summary: 'List secrets',
    prose:
      'Those of one scope, oldest first: the account’s, or with `workspace_id` a workspace’s. A confined key lists its workspace’s. No route tells a value.',
  },
  createSecret: {
    ...writing,
    method: 'POST',
    path: '/secrets',
    body: {
      ...body,
      schema: z.strictObject({ name: secretName, value: secretValue, workspace_id: inScope }),
    },
    answer: { status: 201, schema: secret },
    errors: [
      'secret_scope_refused',
      'secret_workspace_unknown',
      'secret_name_taken',
      'secret_limit',
      'secret_lifetime_limit',
      'keyring_unavailable',
    ],
    summary: 'Store a secret',
    prose: `The name is trimmed, has 1 to ${limits.secretName} characters and no control characters, and is unique in its scope, ignoring the case of A to Z. The value has 1 to ${limits.secretValue} bytes of UTF-8 and is encrypted at rest. An account holds at most ${limits.secretsActive} secrets, and makes at most ${limits.secretsEver} in all its time.`,
  },
  getSecret: {
    ...reading,
    method: 'GET',
    path: '/secrets/{id}',
    query: z.object({ workspace_id: ofScope }),
    answer: { status: 200, schema: secret },
    errors: ['query_refused', 'secret_scope_refused', 'secret_unknown'],
    summary: 'Read a secret, but for its value',
    prose: 'A workspace’s secret is found with its `workspace_id` only.',
  },
  replaceSecret: {
    ...writing,
    method: 'PUT',
    path: '/secrets/{id}',
    body: {
      ...body,
      schema: z.strictObject({
        value: secretValue,
        revision_id: z.string().describe('The present one, as it was read.'),
        workspace_id: inScope,
      }),
    },
    answer: { status: 200, schema: secret },
    errors: ['secret_scope_refused', 'secret_unknown', 'secret_stale', 'keyring_unavailable'],
    summary: 'Replace the value of a secret',
    prose:
      'Gives it a new revision. Of two that replace the same revision one is refused. Computers that run and have it bound get the new value as soon as they can be reached.',
  },
  deleteSecret: {
    ...writing,
    method: 'DELETE',
    path: '/secrets/{id}',
    query: z.object({
      revision_id: z.string().min(1, 'must be the present revision').describe('The present one.'),
      workspace_id: ofScope,
    }),
    answer: { status: 200, schema: z.strictObject({ ok: z.literal(true) }).meta({ id: 'Ok' }) },
    errors: ['query_refused', 'secret_scope_refused', 'secret_unknown', 'secret_stale'],
    summary: 'Delete a secret',
    prose:
      'Its value is erased. It frees one of the account’s active places, not one of those it has in all its time. A computer that has it bound keeps the value while it runs, and is neither started nor resumed until the binding is removed; a restart stops it.',
  },
});
