// Calls into a running computer: passed on to its host, with waking where the wake table says so
// (wire-guest section 0), and failures told in the words of the registry.

import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorName, Refusal } from '@cubicle/contract/errors.ts';
import { type GuestFailure, guestFailure } from '@cubicle/contract/host/api.ts';
import type { ComputerRow } from '../db/computers.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { HostRequest } from '../hosts/host.ts';
import { upstreamError, UpstreamRefusal } from '../hosts/upstream.ts';
import type { Authority } from './authority.ts';
import type { ComputerChanges } from './computer-changes.ts';
import type { Computers } from './computers.ts';

export interface GuestCall extends Omit<HostRequest, 'path'> {
  readonly path: (id: string) => string;
  /** Whether a suspended computer is resumed for it. */
  readonly wakes: boolean;
}

const errorOf: Record<GuestFailure['failure'], ErrorName> = {
  absent: 'computer_not_running',
  not_running: 'computer_not_running',
  suspended: 'computer_suspended_here',
  starting: 'computer_starting',
  silent: 'guest_silent',
  busy: 'guest_busy',
  desktop_absent: 'desktop_absent',
  too_many: 'exec_too_many',
  unknown_command: 'execution_unknown',
  no_file: 'file_unknown',
  refused_file: 'file_refused',
  file_exists: 'file_exists',
  file_too_large: 'file_too_large',
  range: 'range_unsatisfiable',
  no_display: 'desktop_absent',
  no_window: 'window_unknown',
  stale_capture: 'capture_stale',
  clipboard_too_large: 'clipboard_too_large',
  refused_input: 'desktop_refused',
  unconfirmed: 'window_unconfirmed',
  no_frame: 'frame_unavailable',
  unsupported: 'create_only_unsupported',
};

/** How long a call waits while somebody else resumes the computer, or does something else to it. */
const wakeMs = 15_000;
const pollMs = 50;

export class GuestCalls {
  readonly #computers: Computers;
  readonly #changes: ComputerChanges;
  readonly #fleet: Fleet;

  constructor(computers: Computers, changes: ComputerChanges, fleet: Fleet) {
    this.#computers = computers;
    this.#changes = changes;
    this.#fleet = fleet;
  }

  /** The host's answer, its body unread; anything but success throws. */
  async send(authority: Authority, id: string, call: GuestCall): Promise<IncomingMessage> {
    const row = await this.#computers.row(authority, id);
    const giveUpAt = performance.now() + wakeMs;
    for (;;) {
      const answer = await this.#ask(row, call);
      if (!(answer instanceof Refusal)) return answer;
      // Only its host knows: what is stopped or being built is refused without an operation of its own.
      if (!call.wakes || answer.error !== 'computer_suspended_here') throw answer;
      await this.#wake(authority, id, giveUpAt);
    }
  }

  async #ask(row: ComputerRow, call: GuestCall): Promise<IncomingMessage | Refusal> {
    const { path, wakes: _, ...request } = call;
    const host = await this.#fleet.host(row.host_id);
    let response: IncomingMessage;
    try {
      response = await host.send({ ...request, path: path(row.id) });
    } catch (cause) {
      if (cause instanceof Refusal) throw cause;
      if (cause instanceof Error && cause.cause instanceof Refusal) throw cause.cause;
      throw Object.assign(new Refusal('host_unreachable'), { cause });
    }
    return (response.statusCode ?? 500) < 300 ? response : refusalFrom(response);
  }

  /**
   * Resumes a suspended computer; one that was stopped meanwhile stays so, and the call is refused. Of
   * several calls at once one resumes it, and the others wait for that.
   */
  async #wake(authority: Authority, id: string, giveUpAt: number): Promise<void> {
    try {
      await this.#changes.start(authority, id, true);
    } catch (error) {
      const taken = error instanceof Refusal && error.error === 'computer_busy';
      if (!taken || performance.now() > giveUpAt) throw error;
      await pause(pollMs);
    }
  }
}

async function refusalFrom(response: IncomingMessage): Promise<Refusal> {
  const status = response.statusCode ?? 500;
  // It does not know us, or not the path: nothing of the caller's doing.
  if (status === 401 || status === 404) {
    response.resume();
    return new Refusal('host_unreachable');
  }
  const body = await upstreamError(response);
  const { success, data } = guestFailure.safeParse(body);
  if (!success) return new UpstreamRefusal(status, body);
  const problem = data.error === '' ? 'The path cannot be used.' : data.error;
  const length: Record<string, string> =
    data.failure === 'range' ? { 'Content-Range': `bytes */${data.size ?? 0}` } : {};
  return new Refusal(errorOf[data.failure], { problem }, {}, length);
}
