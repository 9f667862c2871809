// Secrets bound to a computer, as they are told and as they are asked for: wire-account section 3.

import { z } from 'zod';
import { idPattern } from './ids.ts';
import { limits } from './limits.ts';
import { envPattern, filePattern, secretsFolder } from './secret-names.ts';
import { timestamp } from './timestamp.ts';

export const secretBinding = z
  .strictObject({
    secret_id: z.string().regex(idPattern('secret')),
    revision_id: z
      .string()
      .regex(idPattern('secretRevision'))
      .describe('Last delivered; until then, the one that was there when it was bound.'),
    env: z.string().optional(),
    file: z.string().optional(),
  })
  .meta({ id: 'SecretBinding' });
export type SecretBinding = z.infer<typeof secretBinding>;

const wish = {
  secret_id: z.string(),
  env: z
    .string()
    .regex(envPattern, `must match ${envPattern.source}`)
    .nullable()
    .optional()
    .describe('The name of a variable: in every command, terminal and new shell.'),
  file: z
    .string()
    .regex(filePattern, `must match ${filePattern.source}`)
    .nullable()
    .optional()
    .describe(`The name of a file in \`${secretsFolder}/user/files\`, which is in memory.`),
};

type Wish = z.infer<z.ZodObject<typeof wish>>;

/** One form each, and nothing twice: a variable and a file may share a spelling. */
function listOf<One extends z.ZodType<Wish>>(one: One) {
  return z
    .array(one)
    .max(limits.secretBindings, `must have at most ${limits.secretBindings} entries`)
    .superRefine((list: Wish[], context) => {
      const problem = (message: string, ...path: (string | number)[]) =>
        context.addIssue({ code: 'custom', message, path });
      const seen = { secret_id: new Set(), env: new Set(), file: new Set() };
      for (const [n, entry] of list.entries()) {
        const { env = null, file = null } = entry;
        if ((env === null) === (file === null)) problem('must have one of `env` and `file`', n);
        for (const [key, values] of Object.entries(seen) as [keyof Wish, Set<unknown>][]) {
          const value = entry[key] ?? null;
          if (value !== null && values.has(value)) problem('must not be there twice', n, key);
          values.add(value);
        }
      }
      const files = list.filter(({ file = null }) => file !== null).length;
      if (files > limits.secretFiles) problem(`must have at most ${limits.secretFiles} files`);
    });
}

/** With a new computer. */
export const newBindings = listOf(z.strictObject(wish));

export const changedBindings = listOf(
  z.strictObject({
    ...wish,
    revision_id: z
      .string()
      .nullable()
      .optional()
      .describe('The one that the computer holds, or nothing.'),
  }),
);
export type BindingWish = z.infer<typeof changedBindings>[number];

/** The part of a computer's record that is about them; absent where nothing is bound. */
export const secretRecordFields = {
  secrets: z.array(secretBinding).optional(),
  secrets_generation: z.int().optional().describe('How many starts have delivered.'),
  secrets_applied: z
    .strictObject({
      generation: z.int(),
      applied_at: timestamp,
      revisions: z.record(z.string(), z.string()).describe('By the secret’s id.'),
    })
    .optional()
    .describe('What it was last given.'),
  secrets_error: z
    .string()
    .optional()
    .describe('The last start that was to deliver could not, and was stopped.'),
  secrets_pending: z
    .boolean()
    .nullable()
    .optional()
    .describe(
      'What is bound differs from what it has: in the list, which takes effect at the next start, or in a value. Null: its host cannot say. Without bindings: true while it still has what was bound.',
    ),
  secrets_delivering: z.boolean().optional(),
};
