// Builds as the control plane orders them from a host, and as the host tells of them. A host keeps what it
// has built under the build's id, and computers are made from it by that id.

import { z } from 'zod';

export const hostBuildPaths = {
  /** GET: every build that the host runs or holds. */
  builds: '/builds',
  /**
   * PUT: an order; repeated with the same id it is the same build. GET: how it is, with `after` and
   * `wait_ms` once it has moved. DELETE: ends it where it runs, and removes what it made.
   */
  build: (id: string) => `/builds/${id}`,
} as const;

const place = { path: z.string(), mode: z.string(), owner: z.string() };

/** One thing to do. `label` is what people read. */
export const hostBuildStep = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('apt'), label: z.string(), packages: z.array(z.string()) }),
  z.object({ kind: z.literal('run'), label: z.string(), script: z.string() }),
  z.object({ kind: z.literal('file'), label: z.string(), ...place, content_b64: z.string() }),
  z.object({ kind: z.literal('mkdir'), label: z.string(), ...place }),
  z.object({
    kind: z.literal('env'),
    label: z.string(),
    variables: z.record(z.string(), z.string()),
  }),
  /** The last one of every build: `env` is for the finished computer. */
  z.object({
    kind: z.literal('finish'),
    label: z.string(),
    env: z.record(z.string(), z.string()),
  }),
]);
export type HostBuildStep = z.infer<typeof hostBuildStep>;

export const hostBuildOrder = z.object({
  /** A template that the host itself has an image of, and that image's digest as the host reported it. */
  parent: z.object({ template: z.string(), digest: z.string() }),
  shape: z.object({ cpu: z.int(), ram_mb: z.int(), disk_gb: z.int() }),
  steps: z.array(hostBuildStep),
  /** Variables that steps see, by name. They are nowhere but in this order and in the memory of steps. */
  secrets: z.record(z.string(), z.string()),
});
export type HostBuildOrder = z.infer<typeof hostBuildOrder>;

/**
 * `busy`: another build runs. `no_room`: no memory or disk for one. `image_preparing`: the parent's image is
 * not there yet. `parent_changed`: it has another digest by now. Nothing was done in any of them.
 */
export const hostBuildAnswer = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('accepted') }),
  z.object({
    outcome: z.literal('refused'),
    why: z.enum(['busy', 'no_room', 'image_preparing', 'parent_changed']),
  }),
]);
export type HostBuildAnswer = z.infer<typeof hostBuildAnswer>;

export const buildPhases = [
  'planning',
  'staging',
  'copying',
  'building',
  'publishing',
  'published',
  'reused',
  'failed',
  'unknown',
] as const;

export const buildStepStatuses = [
  'pending',
  'running',
  'done',
  'failed',
  'skipped',
  'unknown',
] as const;

export const hostBuildProgress = z.object({
  id: z.string(),
  /** Grows by one whenever something moved. */
  moves: z.int(),
  status: z.enum(['running', 'succeeded', 'failed']),
  phase: z.enum(buildPhases),
  /** The running or failed step, from 1; 0 before the first. */
  step: z.int(),
  /** In the order's order. Times are present once started or finished. */
  steps: z.array(
    z.object({
      status: z.enum(buildStepStatuses),
      started_at: z.iso.datetime().optional(),
      finished_at: z.iso.datetime().optional(),
    }),
  ),
  note: z.string(),
  /** Of a failed one; the end of the output where a step failed. */
  error: z.string().optional(),
  updated_at: z.iso.datetime(),
});
export type HostBuildProgress = z.infer<typeof hostBuildProgress>;

/** `held`: finished, and computers can be made from it. */
export const hostBuilds = z.object({
  builds: z.array(z.object({ id: z.string(), state: z.enum(['running', 'held']) })),
});
export type HostBuilds = z.infer<typeof hostBuilds>;
