// Workspaces: Part 2 Workspace and WorkspaceMember, Part 4 Workspaces.

import { z } from 'zod';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes, roles } from '../route.ts';
import { workspaceName } from '../text.ts';
import { timestamp } from '../timestamp.ts';

export const workspace = z
  .strictObject({
    id: z.string().regex(idPattern('workspace')),
    name: z.string(),
    created_at: timestamp,
  })
  .meta({ id: 'Workspace' });
export type Workspace = z.infer<typeof workspace>;

const workspaceMember = z
  .strictObject({
    user_id: z.string().regex(idPattern('user')),
    email: z.string(),
    name: z.string().nullable().describe('Display name; null when the member set none.'),
    role: z.enum(roles).describe('Account role; it applies in every workspace.'),
    accepted_at: timestamp.describe('When they joined the account.'),
    suspended: z.boolean().describe('Global sign-in suspension; still a member of the account.'),
    seat_suspended: z.boolean().describe('Waiting for a seat; cannot act until restored.'),
  })
  .meta({ id: 'WorkspaceMember' });
export type WorkspaceMember = z.infer<typeof workspaceMember>;

const naming = z.strictObject({ name: workspaceName });
const namingBody = { schema: naming, cap: limits.workspaceBody };
const source = 'Part 4, Workspaces';

export const workspaceRoutes = defineRoutes({
  listWorkspaces: {
    method: 'GET',
    path: '/workspaces',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: z.array(workspace) },
    errors: [],
    summary: 'List workspaces',
    prose: 'Oldest first. A key confined to a workspace lists only that one.',
    source,
  },
  createWorkspace: {
    method: 'POST',
    path: '/workspaces',
    role: 'owner',
    reach: 'account',
    cost: costs.readOne,
    body: namingBody,
    answer: { status: 200, schema: workspace },
    errors: ['workspace_name_taken', 'workspace_limit'],
    summary: 'Create a workspace',
    prose: `The name is trimmed, has 1 to ${limits.workspaceName} characters and no ASCII control characters, and is unique in the account. An account holds at most ${limits.workspacesPerAccount} workspaces.`,
    source,
  },
  getWorkspace: {
    method: 'GET',
    path: '/workspaces/{id}',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: workspace },
    errors: ['workspace_unknown'],
    summary: 'Read a workspace',
    prose: 'An id the key cannot see is 404, the same as one that does not exist.',
    source,
  },
  renameWorkspace: {
    method: 'PATCH',
    path: '/workspaces/{id}',
    role: 'owner',
    reach: 'account',
    cost: costs.readOne,
    body: namingBody,
    answer: { status: 200, schema: workspace },
    errors: ['workspace_unknown', 'workspace_name_taken'],
    summary: 'Rename a workspace',
    prose: 'The rules for the name are those of creation. A workspace may keep its own name.',
    source,
  },
  deleteWorkspace: {
    method: 'DELETE',
    path: '/workspaces/{id}',
    role: 'owner',
    reach: 'account',
    cost: costs.readOne,
    answer: {
      status: 200,
      schema: z
        .strictObject({ ok: z.literal(true), revoked_keys: z.int().nonnegative() })
        .meta({ id: 'WorkspaceDeleted' }),
    },
    errors: [
      'workspace_unknown',
      'workspace_has_computers',
      'workspace_has_secrets',
      'fleet_unconfirmed',
    ],
    summary: 'Delete an empty workspace',
    prose:
      'Revokes in the same step every API key confined to it, whoever holds it, and answers how many. Webhooks confined to it are deleted with it.',
    source,
  },
  listWorkspaceMembers: {
    method: 'GET',
    path: '/workspaces/{id}/members',
    role: 'viewer',
    reach: 'account',
    cost: costs.readOne,
    answer: { status: 200, schema: z.array(workspaceMember) },
    errors: ['workspace_unknown'],
    summary: 'List the members who can act in a workspace',
    prose: 'Workspaces do not divide people: these are the account’s members, oldest first.',
    source,
  },
});
