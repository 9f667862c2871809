// Operations: Parts 2, 3 and 4, wire-computers section 9.

import { z } from 'zod';
import { idPattern } from '../ids.ts';
import { costs } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { timestamp } from '../timestamp.ts';

/** `Idempotency-Key`: printable ASCII without space, 1 to 255 characters. */
export const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/;

const operation = z
  .strictObject({
    id: z.string().regex(idPattern('operation')),
    kind: z.string(),
    computer_id: z.string().nullable(),
    state: z.enum(['pending', 'running', 'succeeded', 'failed']),
    error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    idempotency_key: z.string().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    finished_at: timestamp.nullable(),
  })
  .meta({ id: 'Operation' });
export type Operation = z.infer<typeof operation>;

const source = 'Part 4, Operations';

export const operationRoutes = defineRoutes({
  listOperations: {
    method: 'GET',
    path: '/operations',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    query: z.strictObject({
      computer_id: z.string().regex(idPattern('computer')).optional(),
      idempotency_key: z.string().regex(idempotencyKeyPattern).optional(),
      limit: z
        .string()
        .regex(/^([1-9]\d?|100)$/)
        .optional(),
      cursor: z.string().regex(idPattern('operation')).optional(),
    }),
    answer: {
      status: 200,
      schema: z
        .strictObject({ operations: z.array(operation), next_cursor: z.string().nullable() })
        .meta({ id: 'OperationPage' }),
    },
    errors: ['query_refused', 'cursor_unknown'],
    summary: 'List operations',
    prose:
      'Newest first, 20 a page unless `limit` says otherwise (1 to 100). Send `next_cursor` back as `cursor` until it is null. Kept for 7 days.',
    source,
  },
  getOperation: {
    method: 'GET',
    path: '/operations/{id}',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    query: z.strictObject({}),
    answer: { status: 200, schema: operation },
    errors: ['query_refused', 'operation_unknown'],
    summary: 'Read an operation',
    prose: 'Poll it until `state` is `succeeded` or `failed`.',
    source,
  },
});
