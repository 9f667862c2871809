// Who am I, and the keys I hold: wire-account section 4, Part 5.

import { z } from 'zod';
import { idPattern, rawKeyPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes, roles } from '../route.ts';
import { apiKeyName } from '../text.ts';
import { timestamp } from '../timestamp.ts';
import { workspace } from './workspaces.ts';

const workspaceId = z.string().regex(idPattern('workspace'));

const apiKeyFields = {
  id: z.string().regex(idPattern('apiKey')),
  name: z.string().nullable(),
  prefix: z.string().describe('The key’s first characters, to tell keys apart.'),
  created_at: timestamp,
  last_used_at: timestamp.nullable().describe('Kept to the minute.'),
  workspace_id: workspaceId.nullable().describe('Null for an account-wide key.'),
  workspace_name: z.string().nullable(),
  manage_keys: z.boolean(),
  minted_by_key_id: z.string().regex(idPattern('apiKey')).nullable(),
};
const apiKey = z.strictObject(apiKeyFields).meta({ id: 'ApiKey' });
export type ApiKey = z.infer<typeof apiKey>;

const mintedApiKey = z
  .strictObject({ ...apiKeyFields, raw: z.string().regex(rawKeyPattern).describe('Shown once.') })
  .meta({ id: 'MintedApiKey' });
export type MintedApiKey = z.infer<typeof mintedApiKey>;

const whoami = z
  .strictObject({
    user: z.strictObject({
      id: z.string().regex(idPattern('user')),
      email: z.string().nullable(),
      name: z.string().nullable(),
    }),
    account: z.strictObject({
      id: z.string().regex(idPattern('account')),
      name: z.string().nullable(),
      plan: z.string().nullable().describe('Null without a plan.'),
      status: z.enum(['active', 'suspended']),
    }),
    role: z.enum(roles),
    workspace: workspace.nullable(),
    key: apiKey.nullable(),
  })
  .meta({ id: 'Whoami' });
export type Whoami = z.infer<typeof whoami>;

const source = 'wire-account, section 4';

export const apiKeyRoutes = defineRoutes({
  getWhoami: {
    method: 'GET',
    path: '/whoami',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: whoami },
    errors: [],
    whileSuspended: true,
    summary: 'Tell who the key acts for',
    prose:
      'Person, account, role, workspace and key. For a confined key the e-mail, both names and the plan are null.',
    source,
  },
  listApiKeys: {
    method: 'GET',
    path: '/api-keys',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: z.array(apiKey) },
    errors: ['key_management_refused'],
    summary: 'List your API keys',
    prose: 'The holder’s own keys, newest first; a confined key lists those of its workspace.',
    source,
  },
  createApiKey: {
    method: 'POST',
    path: '/api-keys',
    role: 'member',
    reach: 'scope',
    cost: costs.readOne,
    body: {
      schema: z.strictObject({
        name: apiKeyName.optional(),
        workspace_id: z.string().nullable().optional(),
        manage_keys: z.boolean().optional().describe('Only false is accepted.'),
      }),
      cap: limits.jsonBody,
    },
    answer: { status: 201, schema: mintedApiKey },
    errors: [
      'key_management_refused',
      'key_manager_refused',
      'key_scope_refused',
      'workspace_unknown',
      'api_key_limit',
    ],
    verifiedFor: 'making an API key',
    summary: 'Make an API key',
    prose:
      'Without `workspace_id` the key has the caller’s own scope. `raw` is shown in this answer only. A person holds at most 500 keys in an account. Unknown fields are refused, so that nobody believes in a limit the key does not have.',
    source,
  },
  revokeApiKey: {
    method: 'DELETE',
    path: '/api-keys/{id}',
    role: 'member',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: z.strictObject({ ok: z.literal(true) }).meta({ id: 'Ok' }) },
    errors: ['key_management_refused', 'api_key_unknown'],
    summary: 'Revoke an API key',
    prose:
      'Takes effect at once in every process. A key may always revoke itself; another one only with the permission to manage keys. Keys it made stay.',
    source,
  },
});
