import type { secretRoutes } from '@cubicle/contract/resources/secrets.ts';
import type { StoredSecrets } from '../app/stored-secrets.ts';
import type { Handlers } from './handler.ts';

export function secretHandlers(secrets: StoredSecrets): Handlers<typeof secretRoutes> {
  return {
    listSecrets: ({ authority, query }) => secrets.list(authority, query.workspace_id),
    createSecret: ({ authority, body }) => secrets.create(authority, body),
    getSecret: ({ authority, parameters, query }) =>
      secrets.get(authority, parameters.id, query.workspace_id),
    replaceSecret: ({ authority, parameters, body }) =>
      secrets.replace(authority, parameters.id, body),
    deleteSecret: ({ authority, parameters, query }) =>
      secrets.delete(authority, parameters.id, query),
  };
}
