// Calls into a running computer: passed on to its host, with waking where the wake table says so
// (wire-guest section 0), and failures told in the words of the registry.

import type { IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { ComputerRow } from '../db/computers.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { HostRequest } from '../hosts/host.ts';
import type { Authority } from './authority.ts';
import type { ComputerChanges } from './computer-changes.ts';
import type { Computers } from './computers.ts';
import { refusalFrom } from './guest-failures.ts';

export interface GuestCall extends Omit<HostRequest, 'path'> {
  readonly path: (id: string) => string;
  /** Whether a suspended computer is resumed for it. */
  readonly wakes: boolean;
}

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
