import type { workspaceRoutes } from '@cubicle/contract/resources/workspaces.ts';
import type { Workspaces } from '../app/workspaces.ts';
import type { Handlers } from './handler.ts';

export function workspaceHandlers(workspaces: Workspaces): Handlers<typeof workspaceRoutes> {
  return {
    listWorkspaces: ({ authority }) => workspaces.list(authority),
    createWorkspace: ({ authority, body }) => workspaces.create(authority, body.name),
    getWorkspace: ({ authority, parameters }) => workspaces.get(authority, parameters.id),
    renameWorkspace: ({ authority, parameters, body }) =>
      workspaces.rename(authority, parameters.id, body.name),
    deleteWorkspace: ({ authority, parameters }) => workspaces.delete(authority, parameters.id),
    listWorkspaceMembers: ({ authority, parameters }) =>
      workspaces.members(authority, parameters.id),
  };
}
