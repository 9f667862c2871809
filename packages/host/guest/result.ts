// What a call into a guest comes to: an answer, or why there is none. An aborted call throws its signal's
// reason instead; nothing else is thrown.

import { ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import type { Refusal, RefusalReason } from '@cubicle/contract/guest/messages.ts';
import { ProtocolError } from '@cubicle/contract/guest/protocol-error.ts';

export type FailureKind =
  /** No agent is connected: the guest is starting, or its agent is down. */
  | 'no_agent'
  /** The agent went away or broke the protocol under the call, which may or may not have had its effect. */
  | 'broken'
  | 'busy'
  | 'desktop_absent'
  | 'too_many'
  | 'unknown_command'
  | 'no_file'
  | 'no_directory'
  /** The path names something this call does not take. */
  | 'refused_file'
  | 'file_exists'
  | 'file_too_large'
  /** Nothing answers on the desktop's display. */
  | 'no_display'
  | 'no_window'
  | 'stale_capture'
  | 'clipboard_too_large'
  /** The desktop does not take it. */
  | 'refused_input'
  /** The compositor places the window, so nobody else does. */
  | 'tiled_window'
  /** It was asked for, and nothing tells that it came to pass. */
  | 'unconfirmed'
  /** No byte of the file is in the range. */
  | 'range'
  | 'unsupported';

export interface Failed {
  readonly ok: false;
  readonly failure: FailureKind;
  /** A sentence for a person. */
  readonly message: string;
  /** Of the file, for `file_too_large` and `range`. */
  readonly size?: number;
}

export type Result<T> = ({ readonly ok: true } & T) | Failed;

export function failed(failure: FailureKind, message: string): Failed {
  return { ok: false, failure, message };
}

export const noAgent = failed('no_agent', 'The computer’s agent is not connected.');
export const linkBusy = failed('busy', 'The computer has too many calls under way.');

type Words = readonly [FailureKind, string];
const ofCommands: Partial<Record<RefusalReason, Words>> = {
  no_session: ['desktop_absent', 'The computer has no desktop session at the moment.'],
  too_many: ['too_many', 'The computer already has 16 background commands running.'],
  busy: ['busy', 'The computer cannot start another command at the moment.'],
  no_room: ['busy', 'The computer has no room to run a command at the moment.'],
  unknown: ['unknown_command', 'No such command, or it ended too long ago.'],
};
const ofFiles: Partial<Record<RefusalReason, Words>> = {
  absent: ['no_file', 'No such file or directory.'],
  absent_directory: ['no_directory', 'No such directory: {folder}.'],
  not_a_file: ['refused_file', 'The path is not that of a regular file.'],
  not_a_directory: ['refused_file', 'The path is not that of a directory.'],
  symlink: ['refused_file', 'The path is that of a symbolic link.'],
  name_too_long: ['refused_file', 'The name is too long for the computer’s file system.'],
  exists: ['file_exists', 'The path is taken.'],
  too_large: ['file_too_large', 'The file is too large.'],
  range: ['range', 'The file has no byte in that range.'],
  denied: ['refused_file', 'The computer does not allow it: {detail}.'],
  no_room: ['refused_file', 'The computer’s disk is full.'],
  no_links: ['unsupported', 'The file system there cannot create a file only where there is none.'],
  busy: ['busy', 'The computer is too busy.'],
  failed: ['refused_file', 'The computer could not do it: {detail}.'],
};

const ofDesktop: Partial<Record<RefusalReason, Words>> = {
  no_display: ['no_display', 'The desktop does not answer at the moment.'],
  no_session: ['desktop_absent', 'The computer has no desktop session at the moment.'],
  unknown: ['no_window', 'No such window.'],
  stale: ['stale_capture', 'That capture is no longer held.'],
  too_large: ['clipboard_too_large', 'The clipboard holds more than can be read.'],
  invalid: ['refused_input', 'The desktop does not take that.'],
  tiled: ['tiled_window', 'The window is tiled.'],
  busy: ['busy', 'Another program was quicker.'],
  unconfirmed: ['unconfirmed', 'It was asked for, and nothing tells that it was done.'],
};

export function refusedDesktop({ reason }: Refusal, want: string): Failed {
  const words = ofDesktop[reason];
  return words === undefined ? broken(`the agent could not do ${want}`) : failed(...words);
}

/** What the agent may say of a command; anything else makes no sense. */
export function refusedCommand({ reason }: Refusal): Failed {
  const words = ofCommands[reason];
  return words === undefined ? broken('the agent could not') : failed(...words);
}

export function refusedFile({ reason, size, detail }: Refusal, path: string): Failed {
  const words = ofFiles[reason];
  if (words === undefined) return broken('the agent could not');
  const message = words[1]
    .replace('{folder}', () => path.replace(/\/[^/]*$/, '') || '/')
    // A guest's own word is let through only if it is the name of an error.
    .replace('{detail}', () => (/^E[A-Z0-9]{2,20}$/.test(detail) ? detail : 'error'));
  return { ...failed(words[0], message), ...(size === null ? {} : { size }) };
}

/** An outcome for what the link throws; everything else is thrown on. */
export function outcome(error: unknown): Failed {
  if (error instanceof ChannelFailure || error instanceof ProtocolError)
    return broken(error.message);
  throw error;
}

function broken(why: string): Failed {
  return failed('broken', `The computer’s agent did not answer as it should: ${why}.`);
}
