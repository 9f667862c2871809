// Sizes: named shapes that a computer can be made as. wire-computers section 1.

import { z } from 'zod';
import { costs } from '../limits.ts';
import { defineRoutes } from '../route.ts';

const size = z
  .strictObject({
    id: z.string(),
    label: z.string(),
    template: z.string(),
    cpu: z.int(),
    ram_mb: z.int(),
    disk_gb: z.int(),
    allowed: z
      .boolean()
      .describe('The plan’s per-computer ceilings admit it; pools not considered.'),
    cheapest_plan: z.string().nullable().describe('The cheapest plan that admits it.'),
  })
  .meta({ id: 'Size' });
export type Size = z.infer<typeof size>;

export const sizeRoutes = defineRoutes({
  listSizes: {
    method: 'GET',
    path: '/sizes',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: { status: 200, schema: z.array(size) },
    errors: [],
    summary: 'List sizes',
    prose: 'Named shapes for `size` in a create.',
    source: 'wire-computers, section 1',
  },
});
