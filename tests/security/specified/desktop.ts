// The desktop of a running computer: wire-guest sections 1, 2, 7 and 8, Part 8. The computers of the matrix
// have an agent and no display, so whoever is let through is told so; tests/computers has the rest.

import { type Specified, usual } from './shape.ts';

const call = { ...usual, role: 'member', cost: 5, status: 409 } as const;

/** Nothing is changed by whom the door lets through either. */
const asks = (json?: unknown, window?: string): Specified['calls'] => [
  {
    prepare: async ({ world: { shared } }) => ({
      parameters: { id: shared.running, ...(window !== undefined && { window }) },
      ...(json !== undefined && { json }),
      changes: [],
      proves: () => {},
    }),
  },
];

export const desktopOperations: Record<string, Specified> = {
  getScreenshot: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/screenshot',
    role: 'viewer',
    calls: asks(),
  },
  sendInput: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/input',
    calls: asks({ action: 'left_click' }),
  },
  listWindows: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/windows',
    role: 'viewer',
    calls: asks(),
  },
  actOnWindow: {
    ...call,
    method: 'POST',
    path: '/computers/{id}/windows/{window}',
    calls: asks({ action: 'focus' }, '0x1'),
  },
  getClipboard: {
    ...call,
    method: 'GET',
    path: '/computers/{id}/clipboard',
    calls: asks(),
  },
  setClipboard: {
    ...call,
    method: 'PUT',
    path: '/computers/{id}/clipboard',
    calls: asks({ text: 'copied' }),
  },
};
