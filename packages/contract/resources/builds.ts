// Builds: a template document made into an image of the account's. Part 2 Build, Part 4 Builds, Part 6.3,
// wire-account section 2.

import { z } from 'zod';
import { buildPhases, buildStepStatuses } from '../host/builds.ts';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { templateDocument } from '../template-document.ts';
import { timestamp } from '../timestamp.ts';

const statuses = ['running', 'succeeded', 'failed'] as const;
const id = z.string().regex(idPattern('build'));
const error = z
  .string()
  .optional()
  .describe('Of a failed one: why; the end of the output where a step failed.');

const build = z
  .strictObject({
    id,
    ref: z.string().describe('The document built, `namespace/name@version`.'),
    status: z.enum(statuses),
    error,
    started_at: timestamp,
    finished_at: timestamp.optional(),
  })
  .meta({ id: 'Build' });
export type Build = z.infer<typeof build>;

const step = z
  .strictObject({
    n: z.int().positive(),
    kind: z.enum(['apt', 'run', 'file', 'mkdir', 'env', 'finish']),
    label: z.string().describe('Packages, a path, names, or the first line of a script.'),
    status: z
      .enum(buildStepStatuses)
      .describe('`skipped` after a failed one; `unknown` where the record was lost.'),
    started_at: timestamp.optional(),
    finished_at: timestamp.optional(),
  })
  .meta({ id: 'BuildStep' });
export type BuildStep = z.infer<typeof step>;

const progress = z
  .strictObject({
    id,
    status: z.enum(statuses),
    done: z.boolean().describe('Whether to stop polling.'),
    phase: z.enum(buildPhases),
    step: z.int().nonnegative().describe('The running or failed one, from 1; 0 before the first.'),
    of: z.int().nonnegative(),
    steps: z.array(step),
    note: z.string().describe('A line about the phase, or why it failed.'),
    error,
    updated_at: timestamp.describe('When the build last moved.'),
  })
  .meta({ id: 'BuildProgress' });
export type BuildProgress = z.infer<typeof progress>;

/** Of parameters of which one value acts and any other is as if it were not there. */
const anything = z.union([z.string(), z.array(z.string())]).optional();

const source = 'Part 4, Builds';
const read = { method: 'GET', role: 'viewer', reach: 'account', source } as const;

export const buildRoutes = defineRoutes({
  listBuilds: {
    ...read,
    path: '/builds',
    cost: costs.fleetListing,
    query: z.object({
      allow_partial: anything.describe('`1` accepts a short answer.'),
    }),
    answer: { status: 200, schema: z.array(build) },
    errors: ['host_unreachable'],
    summary: 'List builds',
    prose:
      'Those that the fleet still holds, the newest first; failed ones and reuses for 7 days. An unreachable host makes the answer 503 unless `allow_partial=1`: the answer then leaves out what that host has and carries `X-GC-Incomplete: 0`.',
  },
  createBuild: {
    method: 'POST',
    path: '/builds',
    role: 'member',
    reach: 'account',
    cost: costs.document,
    document: { schema: templateDocument, cap: limits.templateBody },
    query: z.object({
      no_reuse: anything.describe('`true`: built anew, even where the same was built before.'),
    }),
    answer: { status: 202, schema: build },
    errors: [
      'document_empty',
      'documents_busy',
      'document_invalid',
      'builds_not_in_plan',
      'template_namespace',
      'build_family',
      'build_parent',
      'build_secrets_limit',
      'build_secret_unresolved',
      'build_secret_undeliverable',
      'secrets_shut',
      'build_pool_exceeded',
      'build_allowance_spent',
      'build_requests_spent',
      'build_contention',
      'builds_unavailable',
      'host_unreachable',
      'build_outcome_unknown',
    ],
    summary: 'Build a template',
    prose:
      'The body is the document, JSON or YAML, whatever its content type. Steps run on a copy of the image that `spec.from` names, one build at a time on a host. The same document with the same revisions of its secrets is the same build, and reuses what the first one made. Builds of the last 24 hours count against the plan’s allowance, requests against one ten times as large. What is kept counts against the storage pool at `disk_gb`; a family keeps its three newest builds on a host.',
    source,
  },
  getBuild: {
    ...read,
    path: '/builds/{id}',
    cost: costs.readOne,
    answer: { status: 200, schema: build },
    errors: ['build_unknown'],
    summary: 'Read a build',
    prose: 'Also one whose image was removed since, for 7 days.',
  },
  getBuildProgress: {
    ...read,
    path: '/builds/{id}/progress',
    cost: costs.readOne,
    answer: { status: 200, schema: progress },
    errors: ['build_unknown'],
    summary: 'Read how far a build is',
    prose: 'Every step in order, whatever its status. Stays readable after the build has ended.',
  },
  streamBuild: {
    ...read,
    path: '/builds/{id}/events',
    cost: costs.readOne,
    answer: { status: 200, schema: z.any(), mediaType: 'text/event-stream' },
    errors: ['build_unknown', 'build_streams_limit'],
    summary: 'Follow a build',
    prose:
      'Server-sent events: `progress` (a BuildProgress) at once and whenever something moved, then one `done` (the last BuildProgress), or one `error` (`{request_id, error}`, with `status` and `reason: revoked` where the authority went) when the stream could not go on, which says nothing about the build. A comment every 10 seconds. At most 50 minutes, and eight streams an account.',
    source: 'Part 6.3',
  },
});
