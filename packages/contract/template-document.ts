// The template document: what an image is made of and what computers from it begin with. This is its one
// description: documents are checked against it, and the JSON Schema at GET /templates/schema is made from it.

import { z } from 'zod';
import { cpu, diskGb, ramMb } from './computer-fields.ts';
import { idPattern } from './ids.ts';
import { limits } from './limits.ts';
import { browserProxy } from './proxies.ts';

/** What a computer gets where neither its create nor its template says. */
export const templateDefaults = { cpu: 2, ram_mb: 2_048, disk_gb: 10 } as const;

export const versionPattern = /^(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){2}$/;
const word = '[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?';
export const namePattern = new RegExp(`^${word}$`);
const refPattern = new RegExp(`^${word}/${word}@${versionPattern.source.slice(1, -1)}$`);
const looseRefPattern = new RegExp(`^${word}/${word}(@${versionPattern.source.slice(1, -1)})?$`);
/** Of a variable in an environment, wherever one is named. */
const envPattern = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const matching = (pattern: RegExp, error: string) => z.string().regex(pattern, { error });

const name = matching(
  namePattern,
  'must be 1 to 63 lower-case letters, digits, `.`, `_` and `-`, with a letter or digit at both ends',
);
/** Shown to people: on one line, and the same however it is printed. */
const shown = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    // eslint-disable-next-line no-control-regex -- control characters are what this refuses
    .regex(/^(?! )(?!.* $)[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$/, {
      error: 'must be one line without control characters, and no space at either end',
    });

const envName = matching(
  envPattern,
  'must be a letter or `_`, then up to 63 letters, digits and `_`',
);
const environment = z
  .record(envName, z.string().max(limits.templateEnvValue))
  .describe('Names of variables, and their values, which are strings.');

const path = z
  .string()
  .max(limits.path)
  .regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/]+)+$/, {
    error: 'must be an absolute path without `.`, `..`, empty parts or a slash at the end',
  });
const mode = matching(/^[0-7]{3,4}$/, 'must be three or four octal digits in quotes, like "0644"');
const owner = matching(
  /^[a-z_][a-z0-9_-]{0,31}(:[a-z_][a-z0-9_-]{0,31})?$/,
  'must be the name of a user, or `user:group`',
);
const placed = {
  path,
  mode: mode.optional().describe('Octal digits; 0644 for files and 0755 for folders when absent.'),
  owner: owner.optional().describe('`user` or `user:group`; root when absent.'),
};

const packageName = z
  .string()
  .max(200)
  .regex(/^[a-z0-9][a-z0-9+.-]+(:[a-z0-9-]+)?([=/][A-Za-z0-9.+:~-]+)?$/, {
    error: 'must be a Debian package: `name`, `name=version` or `name/release`',
  });

export const stepKinds = ['apt', 'run', 'file', 'mkdir', 'env'] as const;

const step = z
  .strictObject({
    apt: z
      .array(packageName)
      .min(1)
      .max(limits.templatePackages)
      .optional()
      .describe('Debian packages to install, without recommendations.'),
    run: z
      .string()
      .min(1)
      .max(limits.templateScript)
      .optional()
      .describe('A script, run by `bash -e` as root.'),
    file: z
      .strictObject({
        ...placed,
        content: z.string().optional().describe('Text. Either this or `content_b64`.'),
        content_b64: z
          .string()
          .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, {
            error: 'must be base64 with padding and without line ends',
          })
          .optional()
          .describe('Bytes in base64.'),
      })
      .optional()
      .describe('A file to write.'),
    mkdir: z
      .strictObject(placed)
      .optional()
      .describe('A folder to make, with those above it that are missing.'),
    env: environment
      .optional()
      .describe('Variables for the steps that follow; `spec.env` is for the finished computer.'),
  })
  .meta({ minProperties: 1, maxProperties: 1 })
  .describe('One thing to do; its key says which kind.');

const secret = z.strictObject({
  id: matching(idPattern('secret'), 'must be the id of a secret, `csec-` and 16 hex digits'),
  as: envName.describe('The variable in which steps find its value.'),
});

const metadata = z.strictObject({
  namespace: name.describe('The id of the account.'),
  name,
  version: matching(
    versionPattern,
    'must be MAJOR.MINOR.PATCH, numbers of at most 9 digits without leading zeros',
  ),
});

const spec = z.strictObject({
  label: shown(limits.templateLabel).optional().describe('For people; the name when absent.'),
  icon: shown(limits.templateIcon).optional(),
  os: z.enum(['linux']),
  desktop: z.enum(['x11', 'wayland']).optional().describe('x11 when absent.'),
  family: name
    .optional()
    .describe('The image family; `golden-` and the account id, or that and `-` and a name.'),
  from: matching(looseRefPattern, 'must be namespace/name or namespace/name@version')
    .optional()
    .describe('The parent. With `build` or `env` it is needed, and a `system/` template.'),
  cpu: cpu.optional(),
  ram_mb: ramMb.optional(),
  disk_gb: diskGb.optional().describe('A computer cannot be built below it.'),
  build: z.array(step).max(limits.templateSteps).optional().describe('What is done, in order.'),
  env: environment.optional().describe('Variables of every session and command in the computer.'),
  secrets: z
    .array(secret)
    .optional()
    .describe('Account-wide secrets that steps may read, as variables.'),
  browser_proxy: browserProxy
    .optional()
    .describe(
      'What a computer’s browser goes through unless its create says otherwise. No host takes one yet: such a create is refused.',
    ),
});

export const templateDocument = z
  .strictObject({
    apiVersion: z.literal('cubicle/v1'),
    kind: z.literal('Template'),
    metadata,
    spec,
  })
  .meta({ id: 'TemplateDocument' });
export type TemplateDocument = z.infer<typeof templateDocument>;

/** `namespace/name@version`. */
export function refOf({ metadata: { namespace, name: own, version } }: TemplateDocument): string {
  return `${namespace}/${own}@${version}`;
}

export function isRef(text: string): boolean {
  return refPattern.test(text);
}

/** A reference taken apart; undefined for what can be none. */
export function parseRef(
  text: string,
): { namespace: string; name: string; version: string | undefined } | undefined {
  if (text.length > 200 || !looseRefPattern.test(text)) return undefined;
  const [, namespace = '', own = '', version] = /^([^/]+)\/([^@]+)(?:@(.+))?$/.exec(text) ?? [];
  return { namespace, name: own, version };
}
