// Files of a computer: wire-guest section 9.

import { z } from 'zod';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { guestErrors, guestPath, wakeErrors } from './exec.ts';

const noWake = z.literal('1').optional();
const source = 'wire-guest, section 9';
const call = { role: 'member', reach: 'scope', source } as const;

const written = z.strictObject({ path: z.string(), bytes: z.int() }).meta({ id: 'FileWritten' });

const listing = z
  .strictObject({
    path: z.string(),
    entries: z.array(
      z.strictObject({
        name: z.string(),
        type: z.enum(['file', 'directory', 'symlink', 'special', 'unavailable']),
        size_bytes: z.int().optional(),
      }),
    ),
    truncated: z.boolean(),
    skipped: z.int(),
  })
  .meta({ id: 'FileListing' });
export type FileListing = z.infer<typeof listing>;

export const fileRoutes = defineRoutes({
  readFile: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/files',
    cost: costs.fileBytes,
    query: z.object({ path: guestPath, no_wake: noWake }),
    answer: { status: 200, also: 206, schema: z.any(), mediaType: 'application/octet-stream' },
    errors: [
      ...guestErrors,
      ...wakeErrors,
      'query_refused',
      'file_unknown',
      'file_refused',
      'file_too_large',
      'range_unsatisfiable',
      'role_lowered',
    ],
    summary: 'Download a file',
    prose:
      'The bytes themselves; `Range` with one range is honoured. A file of more than 64 MiB is read in ranges. A suspended computer is resumed unless `no_wake=1`.',
  },
  writeFile: {
    ...call,
    method: 'PUT',
    path: '/computers/{id}/files',
    cost: costs.fileBytes,
    query: z.object({
      path: guestPath,
      overwrite: z.enum(['true', 'false']).optional(),
      no_wake: noWake,
    }),
    upload: { cap: limits.file },
    answer: { status: 200, schema: written },
    errors: [
      ...guestErrors,
      ...wakeErrors,
      'query_refused',
      'file_unknown',
      'file_refused',
      'file_exists',
      'create_only_unsupported',
      'body_too_large',
      'body_incomplete',
      'request_timeout',
    ],
    summary: 'Upload a file',
    prose:
      'The raw body becomes the file, whole or not at all. `overwrite=false` refuses a path that is taken.',
  },
  listFiles: {
    ...call,
    role: 'viewer',
    method: 'GET',
    path: '/computers/{id}/files/list',
    cost: costs.guestCall,
    query: z.object({ path: guestPath }),
    answer: { status: 200, schema: listing },
    errors: [...guestErrors, 'query_refused', 'file_unknown', 'file_refused'],
    summary: 'List a directory',
    prose:
      'At most 512 names, in no order; `truncated` says there are more. Links are not followed.',
  },
});
