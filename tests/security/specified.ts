// What the specification says of every operation, by its id. Written from its words (Part 4 Account and
// Workspaces, Parts 5 and 8, the supplements), never from the contract's own fields: the matrix holds the
// one against the other. A new route is described here before its tests can pass.

import { accountOperations } from './specified/account.ts';
import { apiKeyOperations } from './specified/api-keys.ts';
import { buildOperations } from './specified/builds.ts';
import { computerOperations, computerSecretOperations } from './specified/computers.ts';
import { desktopOperations } from './specified/desktop.ts';
import { guestOperations } from './specified/guest.ts';
import { operationOperations } from './specified/operations.ts';
import { secretOperations } from './specified/secrets.ts';
import type { Specified } from './specified/shape.ts';
import { sizeOperations } from './specified/sizes.ts';
import { socketOperations } from './specified/sockets.ts';
import { templateOperations } from './specified/templates.ts';
import { webhookOperations } from './specified/webhooks.ts';
import { workspaceOperations } from './specified/workspaces.ts';

export const specified: Record<string, Specified> = {
  ...accountOperations,
  ...workspaceOperations,
  ...apiKeyOperations,
  ...secretOperations,
  ...sizeOperations,
  ...templateOperations,
  ...buildOperations,
  ...computerOperations,
  ...computerSecretOperations,
  ...guestOperations,
  ...desktopOperations,
  ...socketOperations,
  ...operationOperations,
  ...webhookOperations,
};
