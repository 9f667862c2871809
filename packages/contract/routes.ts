// Every public route by its operation id. The server registers from this, OpenAPI is made from it.

import { accountRoutes } from './resources/account.ts';
import { apiKeyRoutes } from './resources/api-keys.ts';
import { buildRoutes } from './resources/builds.ts';
import { computerRoutes } from './resources/computers.ts';
import { computerSecretRoutes } from './resources/computer-secrets.ts';
import { desktopRoutes } from './resources/desktop.ts';
import { execRoutes } from './resources/exec.ts';
import { fileRoutes } from './resources/files.ts';
import { operationRoutes } from './resources/operations.ts';
import { secretRoutes } from './resources/secrets.ts';
import { signalRoutes } from './resources/signals.ts';
import { sizeRoutes } from './resources/sizes.ts';
import { socketRoutes } from './resources/sockets.ts';
import { templateRoutes } from './resources/templates.ts';
import { webhookRoutes } from './resources/webhooks.ts';
import { workspaceRoutes } from './resources/workspaces.ts';

export const basePath = '/api/v1';

export const routes = {
  ...accountRoutes,
  ...workspaceRoutes,
  ...apiKeyRoutes,
  ...secretRoutes,
  ...sizeRoutes,
  ...templateRoutes,
  ...buildRoutes,
  ...computerRoutes,
  ...computerSecretRoutes,
  ...execRoutes,
  ...desktopRoutes,
  ...fileRoutes,
  ...socketRoutes,
  ...signalRoutes,
  ...operationRoutes,
  ...webhookRoutes,
};

export type RouteName = keyof typeof routes;
