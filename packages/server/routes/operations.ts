import type { operationRoutes } from '@cubicle/contract/resources/operations.ts';
import type { Operations } from '../app/operations.ts';
import type { Handlers } from './handler.ts';

export function operationHandlers(operations: Operations): Handlers<typeof operationRoutes> {
  return {
    listOperations: ({ authority, query }) =>
      operations.list(authority, {
        computerId: query.computer_id,
        idempotencyKey: query.idempotency_key,
        limit: Number(query.limit ?? 20),
        cursor: query.cursor,
      }),
    getOperation: ({ authority, parameters }) => operations.get(authority, parameters.id),
  };
}
