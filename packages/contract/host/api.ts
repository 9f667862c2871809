// What the control plane and a host daemon say to each other: HTTP with JSON, over a unix socket on one
// machine. Commands carry the id of their operation and may be repeated with it.

import { z } from 'zod';
import { computerStatuses } from '../computer-fields.ts';

export const hostPaths = {
  report: '/report',
  /** What happened to all computers of the host: see `hostEventPage`. */
  events: '/events',
  computer: (id: string) => `/computers/${id}`,
  commands: (id: string) => `/computers/${id}/commands`,
  exec: (id: string) => `/computers/${id}/exec`,
  execPoll: (id: string, pid: string) => `/computers/${id}/exec/${pid}`,
  execution: (id: string, execution: string) => `/computers/${id}/executions/${execution}`,
  executionOutput: (id: string, execution: string) =>
    `/computers/${id}/executions/${execution}/output`,
  files: (id: string) => `/computers/${id}/files`,
  signals: (id: string) => `/computers/${id}/signals`,
  /** A delivery to a computer that runs: see `hostDelivery`. */
  secrets: (id: string) => `/computers/${id}/secrets`,
  fileList: (id: string) => `/computers/${id}/files/list`,
  screenshot: (id: string) => `/computers/${id}/screenshot`,
  desktop: (id: string, want: string) => `/computers/${id}/desktop/${want}`,
  /** An upgrade to WebSocket. */
  socket: (id: string, kind: HostSocketKind) => `/computers/${id}/sockets/${kind}`,
} as const;

/** What a WebSocket into a computer is for. */
export type HostSocketKind = 'screen' | 'events' | 'terminal';

/** On an upgrade: `1` when the credential controls, absent when it only watches. */
export const controlHeader = 'x-cubicle-control';
/** On an upgrade: the account whose computer it is. */
export const accountHeader = 'x-cubicle-account';

const shape = z.object({ cpu: z.int(), ram_mb: z.int(), disk_gb: z.int() });
export type HostShape = z.infer<typeof shape>;

/**
 * The number of the delivery that a boot is to make. What it delivers is sent beside the command and recorded
 * nowhere: a boot that should deliver and has nothing beside it leaves the computer stopped.
 */
const delivers = z.int().optional();

export const hostCommand = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('create'),
    operation: z.string(),
    template: z.string(),
    /** Made from what this build made; from the template's own image when absent. */
    build: z.string().optional(),
    shape,
    resolution: z.string(),
    name: z.string(),
    start: z.boolean(),
    delivers,
  }),
  z.object({
    kind: z.literal('clone'),
    operation: z.string(),
    source: z.string(),
    shape,
    resolution: z.string(),
    name: z.string(),
  }),
  z.object({
    kind: z.literal('start'),
    operation: z.string(),
    resume_only: z.boolean(),
    delivers,
  }),
  z.object({ kind: z.literal('stop'), operation: z.string(), force: z.boolean() }),
  z.object({
    kind: z.literal('suspend'),
    operation: z.string(),
    /** Only if nobody has used it for this many seconds. */
    idle_s: z.int().optional(),
  }),
  z.object({ kind: z.literal('restart'), operation: z.string(), delivers }),
  z.object({ kind: z.literal('resize'), operation: z.string(), shape }),
  z.object({ kind: z.literal('delete'), operation: z.string() }),
]);
export type HostCommand = z.infer<typeof hostCommand>;

/** Which revision of a secret is which variable or which file. */
const deliveredSecret = z.object({
  secret_id: z.string(),
  revision_id: z.string(),
  env: z.string().nullable(),
  file: z.string().nullable(),
});
export type DeliveredSecret = z.infer<typeof deliveredSecret>;

export const hostDelivery = z.object({
  /** Counts the deliveries to a computer; the guest keeps it, and tells it to its host. */
  serial: z.int(),
  /** What is not among them is taken away. */
  replaces: z.boolean(),
  secrets: z.array(deliveredSecret.extend({ value: z.string() })),
});
export type HostDelivery = z.infer<typeof hostDelivery>;

/** What is sent with a command and is no part of it. */
export const besideCommand = z.object({ delivery: hostDelivery.optional() });

/** How a delivery to a running computer ended. */
export const hostDelivered = z.object({ delivered: z.boolean() });

/**
 * `done`: carried out. `copying`: a clone that goes on; repeating the command asks how it is.
 * `start_failed`: made, but it would not boot. `undelivered`: its secrets could not be
 * delivered, so it is stopped. `refused`: nothing was changed, for this reason.
 */
export const hostOutcome = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('done'),
    status: z.enum(computerStatuses),
    delivered: z.array(deliveredSecret).optional(),
  }),
  z.object({ outcome: z.literal('copying') }),
  z.object({ outcome: z.literal('start_failed'), message: z.string() }),
  z.object({ outcome: z.literal('undelivered'), message: z.string() }),
  z.object({ outcome: z.literal('failed'), message: z.string() }),
  z.object({
    outcome: z.literal('refused'),
    why: z.enum([
      'no_room',
      'absent',
      'not_running',
      'running',
      'suspended',
      'busy',
      'image_preparing',
      'no_image',
    ]),
    /** Of `image_preparing`. */
    preparation: z
      .object({ state: z.enum(['preparing', 'copying', 'failed']), error: z.string() })
      .optional(),
  }),
]);
export type HostOutcome = z.infer<typeof hostOutcome>;

export const hostComputer = z.object({
  id: z.string(),
  status: z.enum(computerStatuses),
  /** The desktop accepts input. */
  ready: z.boolean(),
  /** How long nobody has used a running one; absent while something drives it. */
  idle_s: z.int().optional(),
  /** The last delivery that a running one holds, 0 for none; absent while that is not known. */
  secrets: z.int().optional(),
});
export type HostComputer = z.infer<typeof hostComputer>;

export const hostReport = z.object({
  host: z.object({
    id: z.string(),
    cpu: z.int(),
    ram_mb: z.int(),
    disk_gb: z.int(),
    /** Booted computers that a create would take at once. */
    waiting: z.int(),
    /** The digests of its own templates' images, of those that are made. Builds begin with one of them. */
    images: z.record(z.string(), z.string()),
  }),
  computers: z.array(hostComputer),
});
export type HostReport = z.infer<typeof hostReport>;

const hostEvent = z.object({
  /** A type of Part 6.2, or `gap`. */
  type: z.string(),
  computer: z.string(),
  /** The computer's own, usable as `since` on its stream. */
  cursor: z.string(),
  at: z.iso.datetime(),
  /** The frame as streams get it, byte for byte. */
  body: z.string(),
});
export type HostEvent = z.infer<typeof hostEvent>;

/**
 * Events in order. `cursor` is where the next page begins: of one life of the daemon. A reader whose place
 * is of an earlier life, or no longer held, gets a `gap` first for each computer that it may have missed
 * something of.
 */
export const hostEventPage = z.object({ cursor: z.string(), events: z.array(hostEvent) });
export type HostEventPage = z.infer<typeof hostEventPage>;

/** A guest call the host could not carry out; the control plane turns it into an error of the registry. */
export const guestFailure = z.object({
  failure: z.enum([
    'absent',
    'not_running',
    'suspended',
    'starting',
    'silent',
    'busy',
    'desktop_absent',
    'too_many',
    'unknown_command',
    'no_file',
    'refused_file',
    'file_exists',
    'file_too_large',
    'range',
    'no_display',
    'no_window',
    'stale_capture',
    'clipboard_too_large',
    'refused_input',
    'tiled_window',
    'unconfirmed',
    'no_frame',
    'unsupported',
    'too_many_sockets',
  ]),
  /** A sentence for a person. */
  error: z.string(),
  size: z.number().optional(),
  /** Of `too_many_sockets`. */
  limit: z.int().optional(),
});
export type GuestFailure = z.infer<typeof guestFailure>;
