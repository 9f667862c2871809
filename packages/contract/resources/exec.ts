// Commands in a computer: wire-guest sections 3 and 4.

import { z } from 'zod';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { timestamp } from '../timestamp.ts';

const base64 = z.string().describe('Canonical padded base64, "" for nothing.');
const executionId = z.string().regex(idPattern('execution'));

/** Limits are in bytes of UTF-8, as the guest counts them. */
const bytes = (text: string) => Buffer.byteLength(text);

// eslint-disable-next-line no-control-regex -- control characters are what this refuses
const controls = /[\u0000-\u001f\u007f]/;

export const guestPath = z
  .string()
  .refine((text) => text.startsWith('/'), { error: 'must be an absolute path', abort: true })
  .refine((text) => text.isWellFormed() && !controls.test(text), {
    error: 'must have no control characters',
    abort: true,
  })
  .refine((text) => bytes(text) <= limits.path, {
    error: `must have at most ${limits.path} bytes`,
  });

const environment = z
  .record(z.string(), z.string())
  .refine((env) => Object.keys(env).length <= 64, { error: 'must have at most 64 entries' })
  .refine(
    (env) =>
      Object.entries(env).every(
        ([name, value]) =>
          name !== '' &&
          !/[=\0]/.test(name) &&
          !value.includes('\0') &&
          bytes(name) + bytes(value) + 1 <= 4_096,
      ),
    {
      error:
        'must have names without "=" and values without NUL, each pair of at most 4096 bytes together',
    },
  );

const output = z
  .strictObject({
    exit_code: z.int().describe('-1 when it timed out.'),
    stdout_b64: base64,
    stderr_b64: base64,
    timed_out: z.boolean(),
    out_truncated: z.boolean(),
    err_truncated: z.boolean(),
  })
  .meta({ id: 'ExecOutput' });

const polled = z
  .strictObject({
    pid: z.int().positive(),
    execution_id: executionId,
    running: z.boolean(),
    exit_code: z.int().optional().describe('Absent until it exits.'),
    stdout_b64: base64,
    stderr_b64: base64,
    stdout_offset: z.int(),
    stderr_offset: z.int(),
    more: z.boolean(),
    killed: z.boolean(),
    out_truncated: z.boolean(),
    err_truncated: z.boolean(),
  })
  .meta({ id: 'ExecPoll' });

const execution = z
  .strictObject({
    execution_id: executionId,
    computer_id: z.string().regex(idPattern('computer')),
    pid: z.int().positive(),
    status: z.enum(['running', 'exited', 'lost']),
    started_at: timestamp,
    ended_at: timestamp.optional(),
    exit_code: z.int().optional(),
    output_source: z.literal('volatile_guest_files'),
  })
  .meta({ id: 'Execution' });

const executionOutput = z
  .strictObject({
    execution_id: executionId,
    stdout_b64: base64,
    stderr_b64: base64,
    stdout_offset: z.int(),
    stderr_offset: z.int(),
    stdout_more: z.boolean(),
    stderr_more: z.boolean(),
    diagnostic_b64: base64,
    diagnostic_truncated: z.boolean(),
  })
  .meta({ id: 'ExecutionOutput' });

export const guestErrors = [
  'computer_unknown',
  'computer_not_running',
  'computer_suspended_here',
  'computer_starting',
  'guest_silent',
  'guest_busy',
  'host_unreachable',
] as const;

/** What resuming a suspended computer may come to. */
export const wakeErrors = [
  'computer_busy',
  'quota_exceeded',
  'host_no_room',
  'secret_bound_gone',
  'host_outcome_unknown',
  'host_failed',
] as const;

const offset = z.string().regex(/^\d{1,16}$/);
const source = 'wire-guest, sections 3 and 4';
const call = { role: 'member', reach: 'scope', cost: costs.guestCall, source } as const;

export const execRoutes = defineRoutes({
  execute: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/exec',
    body: {
      schema: z.strictObject({
        command: z
          .string()
          .refine((text) => text.trim() !== '' && !text.includes('\0') && text.isWellFormed(), {
            error: 'must not be blank, and has no NUL',
          }),
        timeout_s: z.int().positive().optional(),
        session: z.literal('desktop').optional(),
        background: z.boolean().optional(),
        cwd: guestPath.optional(),
        env: environment.optional(),
      }),
      cap: limits.execBody,
    },
    answer: { status: 200, also: 202, schema: z.union([output, polled]) },
    errors: [
      ...guestErrors,
      ...wakeErrors,
      'exec_timeout_range',
      'exec_too_many',
      'desktop_absent',
    ],
    summary: 'Run a command',
    prose:
      'By `bash -lc` as root, or in the desktop session. In the foreground the answer comes with its output, at most 16 MiB a stream; with `background: true` it is 202 with a `pid` to poll. A suspended computer is resumed.',
  },
  pollExec: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/exec/{pid}',
    answer: { status: 200, schema: polled },
    errors: [...guestErrors, 'execution_unknown'],
    summary: 'Read on in a background command’s output',
    prose: 'A consuming cursor shared by all readers: at most 1 MiB a stream each time.',
  },
  killExec: {
    ...call,
    method: 'DELETE',
    path: '/computers/{id}/exec/{pid}',
    answer: { status: 200, schema: polled },
    errors: [...guestErrors, 'execution_unknown'],
    summary: 'End a background command and its children',
    prose: 'Answers the unread end of its output.',
  },
  getExecution: {
    ...call,
    role: 'viewer',
    cost: costs.readOne,
    method: 'GET',
    path: '/computers/{id}/executions/{execution}',
    answer: { status: 200, schema: execution },
    errors: ['computer_unknown', 'execution_unknown', 'host_unreachable'],
    summary: 'Read an execution',
    prose: 'From the host’s memory: nothing is asked of the guest.',
  },
  getExecutionOutput: {
    ...call,
    role: 'viewer',
    method: 'GET',
    path: '/computers/{id}/executions/{execution}/output',
    query: z.object({
      stdout_offset: offset,
      stderr_offset: offset,
      limit: z
        .string()
        .regex(/^\d{1,7}$/)
        .optional(),
    }),
    answer: { status: 200, schema: executionOutput },
    errors: [...guestErrors, 'query_refused', 'execution_unknown'],
    summary: 'Read an execution’s output by offset',
    prose: 'Does not consume. `limit` is 1 to 1048576 bytes a stream, 65536 unless said.',
  },
});
