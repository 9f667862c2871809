// What the host itself saw of a computer: wire-computers section 11.

import { z } from 'zod';
import { computerStatuses } from '../computer-fields.ts';
import { daemonEvents } from '../events.ts';
import { idPattern } from '../ids.ts';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { timestamp } from '../timestamp.ts';

const cursor = z.string().min(1).max(limits.signalsSince);
const told = {
  seq: z.int().min(0),
  cursor,
  at: timestamp,
  computer: z.string().regex(idPattern('computer')),
  source: z.literal('daemon'),
};
const process = {
  pid: z.int().min(1).max(2_147_483_647),
  execution_id: z.string().regex(idPattern('execution')),
};

const signal = z
  .union([
    z.strictObject({
      ...told,
      type: z.literal('process.exited'),
      data: z.union([
        z.strictObject({ ...process, exit_code: z.int() }),
        z.strictObject({ ...process, lost: z.literal(true) }),
      ]),
    }),
    z.strictObject({
      ...told,
      type: z.enum(['computer.started', 'computer.stopped', 'computer.suspended']),
      data: z.strictObject({
        status: z.enum(computerStatuses),
        previous: z
          .enum(computerStatuses)
          .optional()
          .describe('Absent on the first change that a host tells after it was started.'),
      }),
    }),
    z.strictObject({
      ...told,
      type: z.literal('computer.idle'),
      data: z.strictObject({ idle_seconds: z.int().min(0) }),
    }),
  ])
  .meta({ id: 'Signal' });

const page = z
  .strictObject({
    computer: z.string().regex(idPattern('computer')),
    from: cursor.describe('The `since` that was read from; on a baseline or gap the cursor.'),
    cursor: cursor.describe('The next `since`.'),
    events: z.array(signal).max(limits.signalsPage),
    more: z.boolean().describe('There are further events after this page.'),
    baseline: z.boolean().describe('No `since` was given.'),
    gap: z
      .strictObject({
        type: z.literal('gap'),
        cursor,
        at: timestamp,
        computer: told.computer,
        source: told.source,
        data: z.strictObject({ oldest_cursor: cursor.optional(), detail: z.string() }),
      })
      .optional()
      .describe('Events after `since` are no longer held: read what you need to know anew.'),
    supported: z.array(z.enum(daemonEvents)),
    retention: z.literal('ephemeral'),
  })
  .meta({ id: 'SignalPage' });

export const signalRoutes = defineRoutes({
  listSignals: {
    method: 'GET',
    path: '/computers/{id}/signals',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    query: z.object({
      since: z.string().max(limits.signalsSince).optional(),
      limit: z
        .string()
        .regex(/^(?:[1-9]\d?|100)$/, { error: `must be from 1 to ${limits.signalsPage}` })
        .optional(),
    }),
    answer: { status: 200, schema: page },
    errors: ['computer_unknown', 'query_refused', 'host_unreachable'],
    summary: 'Read what happened to a computer',
    prose:
      'What its host saw of it: commands that ended, starts, stops, suspends, idle time. Without `since` the answer is a baseline to read on from. From the host’s memory: nothing is asked of the guest, and nothing is kept when the host is restarted. `limit` is 1 to 100, 50 unless said.',
    source: 'wire-computers, section 11',
  },
});
