// Reads a query string against a route's schema.

import type { z } from 'zod';
import { Refusal } from '@cubicle/contract/errors.ts';
import { problemSentence } from '@cubicle/contract/problem.ts';

/** A name given twice becomes an array, which no schema here takes: it is refused, not guessed at. */
export function readQuery(query: string, schema: z.ZodType): unknown {
  const values: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values[name];
    values[name] = before === undefined ? value : [before, value].flat();
  }
  const checked = schema.safeParse({ ...values }, { reportInput: true });
  if (!checked.success) {
    throw new Refusal('query_refused', { problem: problemSentence(checked.error) });
  }
  return checked.data;
}
