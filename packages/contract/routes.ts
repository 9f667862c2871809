// Every public route by its operation id. The server registers from this, OpenAPI is made from it.

import { accountRoutes } from './resources/account.ts';
import { apiKeyRoutes } from './resources/api-keys.ts';
import { workspaceRoutes } from './resources/workspaces.ts';

export const basePath = '/api/v1';

export const routes = { ...accountRoutes, ...workspaceRoutes, ...apiKeyRoutes };

export type RouteName = keyof typeof routes;
