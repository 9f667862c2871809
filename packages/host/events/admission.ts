// Whether an event stream may be opened (Part 6.2, socket limits and refusals). What refuses it is a value:
// the upgrade answers with its status, reason and sentence.

import { limits } from '@cubicle/contract/limits.ts';
import { cleanTree } from '@cubicle/contract/tree-path.ts';

export interface StreamRefusal {
  readonly why:
    | 'absent'
    | 'suspended'
    | 'not_running'
    | 'watch_path'
    | 'watch_count'
    | 'streams_of_computer'
    | 'streams_of_account'
    | 'trees_of_computer';
  readonly status: 400 | 404 | 409;
  readonly reason?: 'unavailable';
  readonly resumeRequired?: true;
  readonly message: string;
}

export const refusals = {
  absent: { why: 'absent', status: 404, message: 'No such computer.' },
  suspended: {
    why: 'suspended',
    status: 409,
    reason: 'unavailable',
    resumeRequired: true,
    message: 'The computer is suspended. Start it and reconnect.',
  },
  notRunning: {
    why: 'not_running',
    status: 409,
    reason: 'unavailable',
    message: 'The computer is not running.',
  },
  watchPath: {
    why: 'watch_path',
    status: 400,
    message: `A watch must be an absolute path of at most ${limits.treePath} bytes, without control characters, and not the root.`,
  },
  watchCount: {
    why: 'watch_count',
    status: 400,
    message: `A stream watches at most ${limits.treesPerStream} trees.`,
  },
  ofComputer: {
    why: 'streams_of_computer',
    status: 409,
    message: `The computer already has ${limits.streamsPerComputer} event streams open.`,
  },
  ofAccount: {
    why: 'streams_of_account',
    status: 409,
    message: `The account already has ${limits.streamsPerAccount} event streams open on this host.`,
  },
  trees: {
    why: 'trees_of_computer',
    status: 409,
    reason: 'unavailable',
    message: `At most ${limits.treesPerComputer} trees of a computer are watched at once.`,
  },
} as const satisfies Record<string, StreamRefusal>;

/** The trees meant, cleaned, each once. */
export function treesOf(watches: readonly string[]): string[] | StreamRefusal {
  const cleaned = new Set<string>();
  for (const watch of watches) {
    const tree = cleanTree(watch);
    if (tree === undefined) return refusals.watchPath;
    cleaned.add(tree);
    if (cleaned.size > limits.treesPerStream) return refusals.watchCount;
  }
  return [...cleaned];
}
