// The secrets that are bound to a computer: wire-account section 3.

import { z } from 'zod';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { changedBindings, secretBinding } from '../secret-bindings.ts';
import { secretsFolder } from '../secret-names.ts';

const bindings = z
  .strictObject({
    secrets: z.array(secretBinding),
    version: z.int().describe('Of the list; 0 when nothing was ever bound.'),
  })
  .meta({ id: 'SecretBindings' });
export type SecretBindings = z.infer<typeof bindings>;

const common = {
  path: '/computers/{id}/secrets',
  reach: 'scope',
  cost: costs.readOne,
  answer: { status: 200, schema: bindings },
  source: 'wire-account, section 3',
} as const;

export const computerSecretRoutes = defineRoutes({
  getComputerSecrets: {
    ...common,
    method: 'GET',
    role: 'viewer',
    errors: ['computer_unknown'],
    summary: 'Read which secrets are bound to a computer',
    prose: 'Without their values, which no route tells.',
  },
  putComputerSecrets: {
    ...common,
    method: 'PUT',
    role: 'member',
    body: {
      schema: z.strictObject({
        secrets: changedBindings,
        version: z
          .int()
          .optional()
          .describe('As it was read: the list is refused when another call has changed it since.'),
      }),
      cap: limits.jsonBody,
    },
    errors: [
      'computer_unknown',
      'computer_busy',
      'computer_not_ready',
      'host_unreachable',
      'secret_binding_unresolved',
      'secret_bindings_stale',
      'secret_binding_stale',
      'secrets_first_binding',
      'secrets_delivering',
    ],
    summary: 'Bind secrets to a computer',
    prose: `Replaces the whole list; \`[]\` clears it. At most ${limits.secretBindings}, of them ${limits.secretFiles} files; each secret once, as a variable or as a file in \`${secretsFolder}/user/files\`. A computer in a workspace may have its workspace’s secrets and the account’s, one in none the account’s. The first one is bound while it is stopped; later changes take effect at the next start or restart. A value that is replaced reaches computers that run: files at once, variables in new shells and every command.`,
  },
});
