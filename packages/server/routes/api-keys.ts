import type { apiKeyRoutes } from '@cubicle/contract/resources/api-keys.ts';
import type { ApiKeys } from '../app/api-keys.ts';
import type { Handlers } from './handler.ts';

export function apiKeyHandlers(keys: ApiKeys): Handlers<typeof apiKeyRoutes> {
  return {
    getWhoami: ({ authority }) => keys.whoami(authority),
    listApiKeys: ({ authority }) => keys.list(authority),
    createApiKey: ({ authority, body }) => keys.create(authority, body),
    revokeApiKey: ({ authority, parameters }) => keys.revoke(authority, parameters.id),
  };
}
