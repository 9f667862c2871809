// What a person is told when there is no picture.

import { closeCodes } from './wire.ts';

export interface Notice {
  /** `busy` goes on by itself, `rest` when somebody starts the computer, `end` never. */
  readonly kind: 'busy' | 'rest' | 'end';
  readonly title: string;
  readonly text: string;
}

const busy = (title: string, text: string): Notice => ({ kind: 'busy', title, text });
const rest = (title: string, text: string): Notice => ({ kind: 'rest', title, text });
const end = (title: string, text: string): Notice => ({ kind: 'end', title, text });

export const notices = {
  connecting: busy('Connecting', 'The desktop will be here in a moment.'),
  starting: busy('Starting', 'The computer is starting; its desktop comes up in a moment.'),
  reconnecting: busy('Reconnecting', 'The connection was lost. Trying again.'),
  suspended: rest(
    'Suspended',
    'The computer sleeps with everything as it was. This page goes on when it is resumed.',
  ),
  stopped: rest('Stopped', 'The computer is switched off. This page goes on when it is started.'),
  full: rest(
    'Too many are watching',
    'This computer’s desktop is open in as many places as it may be.',
  ),
  replaced: end(
    'This link was replaced',
    'The computer was restarted or moved, and has new links. Open it again from there.',
  ),
  revoked: end(
    'Access was withdrawn',
    'Whoever shared this desktop, or an owner of the account, has ended the access.',
  ),
  gone: end('Deleted', 'The computer is no longer there.'),
  unknown: end(
    'This link opens nothing',
    'Its access was withdrawn or replaced, or the computer was deleted.',
  ),
  incomplete: end(
    'This link is incomplete',
    'The part after the # is missing. Copy the whole address.',
  ),
} satisfies Record<string, Notice>;

/** After a close that says for good why. */
export function lastWord(code: number): Notice | undefined {
  if (code === closeCodes.replaced) return notices.replaced;
  if (code === closeCodes.revoked) return notices.revoked;
  return code === closeCodes.gone ? notices.gone : undefined;
}
