import type { computerSecretRoutes } from '@cubicle/contract/resources/computer-secrets.ts';
import type { SecretBindings } from '../app/secret-bindings.ts';
import type { Handlers } from './handler.ts';

export function computerSecretHandlers(
  bindings: SecretBindings,
): Handlers<typeof computerSecretRoutes> {
  return {
    getComputerSecrets: ({ authority, parameters }) => bindings.get(authority, parameters.id),
    putComputerSecrets: ({ authority, parameters, body }) =>
      bindings.put(authority, parameters.id, body),
  };
}
