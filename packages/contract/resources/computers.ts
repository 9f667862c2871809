// Computers and their lifecycle: wire-computers sections 2 to 7, Part 2 Computer, Part 4 Workspaces 4.

import { z } from 'zod';
import {
  computerName,
  computerStatuses,
  cpu,
  diskGb,
  idleSuspendMin,
  listingStates,
  ramMb,
  resolution,
} from '../computer-fields.ts';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { browserProxy, egressProxy } from '../proxies.ts';
import { defineRoutes } from '../route.ts';
import { newBindings, secretRecordFields } from '../secret-bindings.ts';
import { timestamp } from '../timestamp.ts';

const operationId = z.string().regex(idPattern('operation'));

const vnc = z
  .strictObject({
    url: z.string().optional(),
    view_url: z.string(),
    token: z.string().optional(),
    view_token: z.string(),
    embed_url: z.string(),
    terminal_url: z.string().optional(),
    events_url: z.string().optional(),
    clipboard: z.boolean(),
  })
  .describe('How to see and reach the desktop. A viewer gets the watch-only part.');

const computer = z
  .strictObject({
    id: z.string().regex(idPattern('computer')),
    name: z.string(),
    status: z.enum(computerStatuses).optional(),
    state: z.enum(listingStates).optional().describe('In listings only.'),
    unreachable: z.literal(true).optional(),
    deleted_at: timestamp.optional(),
    lost_at: timestamp.optional(),
    os: z.string(),
    desktop: z.string().optional(),
    template: z.string(),
    cpu: z.int(),
    ram_mb: z.int(),
    running_ram_mb: z.int().optional().describe('Charged to the running pool.'),
    disk_gb: z.int(),
    resolution: z.string().optional(),
    workspace_id: z.string().optional().describe('Absent when in none.'),
    created_at: timestamp,
    idle_suspend_min: z.int().optional().describe('Absent: follows the host. 0: never.'),
    suspended: z.strictObject({ at: timestamp }).optional(),
    build: z
      .strictObject({
        source: z.string().optional(),
        started: timestamp.optional(),
        failed: z.string().optional(),
      })
      .optional(),
    ...secretRecordFields,
    operation_id: operationId.optional(),
    url: z.string().optional(),
    events_url: z.string().optional(),
    terminal_url: z.string().optional(),
    vnc: vnc.optional(),
  })
  .meta({ id: 'Computer' });
export type Computer = z.infer<typeof computer>;

const made = z.union([
  computer,
  z
    .strictObject({
      computer,
      start_error: z.string(),
      operation_id: operationId.optional(),
    })
    .meta({ id: 'ComputerNotStarted' }),
]);

const done = z
  .strictObject({ ok: z.literal(true), operation_id: operationId.optional() })
  .meta({ id: 'Done' });

const flag = (value: string) => z.literal(value).optional();

const source = 'wire-computers, sections 2 to 7';
const one = {
  role: 'member',
  reach: 'scope',
  idempotent: true,
  source,
} as const;
const acting = {
  ...one,
  method: 'POST',
  cost: costs.powerChange,
  answer: { status: 200, schema: done },
} as const;
const lifecycleErrors = [
  'computer_unknown',
  'computer_busy',
  'idempotency_key_invalid',
  'idempotency_in_progress',
  'idempotency_outcome_unknown',
  'idempotency_key_reused',
  'host_unreachable',
  'host_outcome_unknown',
  'host_failed',
] as const;

export const computerRoutes = defineRoutes({
  listComputers: {
    method: 'GET',
    path: '/computers',
    role: 'viewer',
    reach: 'scope',
    cost: costs.fleetListing,
    query: z.object({
      allow_partial: z.string().optional(),
      state: z.enum(listingStates).optional(),
      workspace_id: z.string().optional(),
    }),
    answer: { status: 200, schema: z.array(computer) },
    errors: ['query_refused', 'workspace_unknown', 'host_unreachable'],
    summary: 'List computers',
    prose:
      'Live, unreachable and deleting ones, oldest first; `state` asks for another kind, `workspace_id` for one workspace or `unassigned`. An unreachable host makes the answer 503 unless `allow_partial=1`, which accepts a short one and says so in `X-GC-Incomplete`.',
    source,
  },
  createComputer: {
    ...one,
    method: 'POST',
    path: '/computers',
    cost: costs.makeComputer,
    body: {
      schema: z.strictObject({
        name: computerName
          .optional()
          .describe('A label, not unique: trimmed, cut to 64 characters. Picked when absent.'),
        size: z
          .string()
          .optional()
          .describe('One of `GET /sizes`, instead of `template` and the three figures.'),
        template: z
          .string()
          .optional()
          .describe(
            '`base` when absent, and for a short name that is none of GET /templates. Or a reference, `namespace/name` for its highest version.',
          ),
        template_transfer: z
          .string()
          .regex(/\S/, 'must not be blank')
          .optional()
          .describe('From the 409 `template_image_preparing` that this create goes on from.'),
        cpu: cpu.optional().describe('At least 1; the template’s when absent.'),
        ram_mb: ramMb.optional().describe('At least 512; the template’s when absent.'),
        disk_gb: diskGb.optional().describe('Raised to the template’s when below it.'),
        resolution: resolution
          .optional()
          .describe(
            '`WxH` or `WxHxD`, even sides from 640x480 to 3840x2160, depth 16, 24 or 32; `1280x800x24` when absent. Stays as it is.',
          ),
        start: z.boolean().optional().describe('True when absent.'),
        workspace_id: z.string().optional().describe('The key’s own, or none, when absent.'),
        secrets: newBindings
          .optional()
          .describe('Bound from the start, as PUT /computers/{id}/secrets does.'),
        browser_proxy: browserProxy
          .nullable()
          .optional()
          .describe('Null declines the template’s. No host takes one yet: 409.'),
        egress_proxy: egressProxy.optional().describe('No host takes one yet: 409.'),
      }),
      cap: limits.jsonBody,
    },
    answer: { status: 201, schema: made },
    errors: [
      ...lifecycleErrors.filter((name) => name !== 'computer_unknown' && name !== 'computer_busy'),
      'size_unknown',
      'size_and_shape',
      'workspace_unknown',
      'template_unknown',
      'template_transfer_unknown',
      'template_image_preparing',
      'template_retired',
      'template_not_built',
      'template_image_absent',
      'template_family',
      'templates_incomplete',
      'quota_exceeded',
      'host_no_room',
      'engine_absent',
      'secret_binding_unresolved',
      'keyring_unavailable',
      'proxy_unsupported',
    ],
    verifiedFor: 'creating a computer',
    summary: 'Create a computer',
    prose:
      'A `size`, or a `template` with `cpu`, `ram_mb` and `disk_gb`. The template’s disk is a floor. With `start` (the default) the answer comes when it runs; one that was built but would not boot is answered in an envelope with `start_error`.',
  },
  getComputer: {
    method: 'GET',
    path: '/computers/{id}',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: computer },
    errors: ['computer_unknown', 'host_unreachable'],
    summary: 'Read a computer',
    prose: 'With the addresses and credentials of its desktop while it runs.',
    source,
  },
  changeComputer: {
    ...one,
    method: 'PATCH',
    path: '/computers/{id}',
    cost: costs.powerChange,
    body: {
      schema: z.strictObject({
        name: computerName.optional(),
        cpu: cpu.optional(),
        ram_mb: ramMb.optional(),
        disk_gb: diskGb.optional(),
        idle_suspend_min: idleSuspendMin.nullable().optional(),
        browser_proxy: browserProxy.nullable().optional(),
        egress_proxy: egressProxy.nullable().optional(),
      }),
      cap: limits.jsonBody,
    },
    answer: { status: 200, schema: computer },
    errors: [
      ...lifecycleErrors,
      'change_groups',
      'computer_running',
      'disk_shrinks',
      'quota_exceeded',
      'resize_needs_move',
      'computer_not_ready',
      'proxy_unsupported',
    ],
    summary: 'Rename, resize or set the idle time of a computer',
    prose:
      'One group per request: `name`; `cpu`, `ram_mb` and `disk_gb` (stopped or suspended, the disk only grows, a saved session is discarded); `idle_suspend_min`; `browser_proxy`; `egress_proxy` (neither is taken by any host yet; null is, and changes nothing).',
  },
  deleteComputer: {
    ...one,
    method: 'DELETE',
    path: '/computers/{id}',
    cost: costs.powerChange,
    answer: { status: 200, schema: done },
    errors: lifecycleErrors,
    summary: 'Delete a computer',
    prose: 'Its disk goes with it. Deleting a half-removed computer again is what clears it.',
  },
  startComputer: {
    ...acting,
    path: '/computers/{id}/start',
    query: z.object({ resume_only: flag('true') }),
    errors: [
      ...lifecycleErrors,
      'query_refused',
      'computer_not_ready',
      'quota_exceeded',
      'host_no_room',
      'secret_bound_gone',
      'secrets_undelivered',
      'keyring_unavailable',
    ],
    summary: 'Start or resume a computer',
    prose:
      'With `resume_only=true` a stopped computer without a session is left as it is. Secrets that are bound are delivered before the answer; when they cannot be, the computer is stopped again and `secrets_error` says so.',
  },
  stopComputer: {
    ...acting,
    path: '/computers/{id}/stop',
    query: z.object({ force: flag('true') }),
    errors: [...lifecycleErrors, 'query_refused', 'computer_not_ready'],
    summary: 'Stop a computer',
    prose: 'A polite shutdown; `force=true` pulls the power. A suspended one loses its session.',
  },
  suspendComputer: {
    ...acting,
    path: '/computers/{id}/suspend',
    errors: [
      ...lifecycleErrors,
      'computer_not_running',
      'computer_not_ready',
      'secrets_delivering',
      'secrets_changed',
    ],
    summary: 'Suspend a computer',
    prose:
      'It must be running, and its bound secrets those it was started with. Its session is kept; start resumes it.',
  },
  restartComputer: {
    ...acting,
    path: '/computers/{id}/restart',
    errors: [
      ...lifecycleErrors,
      'computer_suspended',
      'computer_not_ready',
      'quota_exceeded',
      'host_no_room',
      'secrets_delivering',
      'secrets_need_start',
      'secrets_undelivered',
      'keyring_unavailable',
    ],
    summary: 'Restart a computer',
    prose:
      'Gives new desktop credentials. A stopped computer is started, unless secrets are bound to it. One whose bound secret was deleted is stopped.',
  },
  cloneComputer: {
    ...one,
    method: 'POST',
    path: '/computers/{id}/clone',
    cost: costs.makeComputer,
    body: { schema: z.strictObject({ name: computerName.optional() }), cap: limits.jsonBody },
    answer: { status: 201, schema: computer },
    errors: [
      ...lifecycleErrors,
      'computer_running',
      'computer_not_ready',
      'quota_exceeded',
      'host_no_room',
    ],
    verifiedFor: 'cloning a computer',
    summary: 'Clone a stopped or suspended computer',
    prose:
      'The copy keeps size and resolution, is `building` until its disk is copied, and lands stopped. No secret is bound to it.',
  },
  moveComputerToWorkspace: {
    method: 'PUT',
    path: '/computers/{id}/workspace',
    role: 'member',
    reach: 'account',
    cost: costs.readOne,
    body: {
      schema: z.strictObject({ workspace_id: z.string().nullable() }),
      cap: limits.jsonBody,
    },
    answer: { status: 200, schema: computer },
    errors: [
      'computer_unknown',
      'workspace_unknown',
      'computer_busy',
      'computer_not_stopped',
      'computer_has_secrets',
      'host_unreachable',
    ],
    summary: 'Move a computer to another workspace, or to none',
    prose:
      'It must be stopped without a saved session, and no secret bound to it. Keys of the old workspace lose it, those of the new one reach it, and its desktop credentials are replaced.',
    source: 'Part 4, Workspaces 4',
  },
});
