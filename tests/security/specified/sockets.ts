// Part 4 Event socket, wire-guest section 10: an API key opens no socket, and is told so for every id.

import type { Specified } from './shape.ts';
import { usual } from './shape.ts';

const guided = (name: string): Specified => ({
  ...usual,
  method: 'GET',
  path: `/computers/{id}/${name}`,
  role: 'viewer',
  status: 400,
  calls: [
    {
      prepare: async () => ({
        parameters: { id: 'vm-000000000000' },
        changes: [],
        proves: () => {},
      }),
    },
  ],
});

export const socketOperations: Record<string, Specified> = {
  openScreen: guided('vnc'),
  openEvents: guided('events'),
  openTerminal: guided('terminal'),
};
