// Attachments to the terminals of a host's computers: who may attach, who makes way, and how many at a time.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { boundedSize, type TerminalRequest } from '@cubicle/contract/terminal.ts';
import type { GuestLinks } from '../guest/links.ts';
import { Turns } from '../turns.ts';
import { Attachment } from './attachment.ts';
import {
  notRunning,
  refusalFor,
  refusedTerminal,
  suspended,
  type TerminalRefusal,
  unreachable,
} from './refusals.ts';

/** What the host knows of an instance. */
export interface Standing {
  state(context: Context, instance: string): Promise<'running' | 'suspended' | 'not_running'>;
  /** It began so lately that a silent agent is expected. */
  starting(instance: string): boolean;
}

type Attached = { readonly ok: true; readonly attachment: Attachment };

/** An agent that answers at all answers sooner, whatever its guest is busy with. */
const patienceMs = 15_000;
const late = new Error('the agent took too long');

export class Terminals {
  readonly #links: GuestLinks;
  readonly #standing: Standing;
  readonly #turns = new Turns();
  /** By instance, in the order of attaching; those that are over stay until their socket is gone. */
  readonly #attached = new Map<string, Set<Attachment>>();

  constructor(links: GuestLinks, standing: Standing) {
    this.#links = links;
    this.#standing = standing;
  }

  /**
   * Before the upgrade, which is refused or made by what this answers. An attachment takes a place until
   * it is left, joined or not.
   */
  async attach(
    context: Context,
    instance: string,
    asked: TerminalRequest,
  ): Promise<Attached | TerminalRefusal> {
    const state = await this.#standing.state(context, instance);
    if (state !== 'running') return state === 'suspended' ? suspended : notRunning;
    // In turn for each session: the guest has to agree on who came last.
    return this.#turns.take(`${instance}/${asked.session}`, () =>
      this.#open(context, instance, asked),
    );
  }

  async #open(
    context: Context,
    instance: string,
    { session, cols, rows }: TerminalRequest,
  ): Promise<Attached | TerminalRefusal> {
    context.signal.throwIfAborted();
    // The attachment outlives the call that asked for it.
    const whole = new AbortController();
    const abort = () => whole.abort(context.signal.reason);
    context.signal.addEventListener('abort', abort, { once: true });
    const timer = setTimeout(() => whole.abort(late), patienceMs);
    try {
      const size = boundedSize(cols, rows);
      const create = this.#count(instance) < limits.terminalAttachments;
      const request = { op: 'terminal', session, ...size, create } as const;
      const result = await this.#links.terminal(whole, instance, request, refusedTerminal);
      if (!result.ok) return refusalFor(result, this.#standing.starting(instance));
      const attachment = new Attachment(session, result, (left) => this.#leave(instance, left));
      this.#admit(instance, attachment);
      return { ok: true, attachment };
    } catch (error) {
      if (error === late) return unreachable;
      throw error;
    } finally {
      clearTimeout(timer);
      context.signal.removeEventListener('abort', abort);
    }
  }

  #admit(instance: string, newest: Attachment): void {
    const all = this.#attached.get(instance) ?? new Set();
    this.#attached.set(instance, all);
    for (const other of all) if (other.session === newest.session) other.displace();
    // Each session has one that is not over, so there is always one that only waits to be gone.
    for (const other of all) {
      if (all.size < limits.terminalAttachments) break;
      if (other.over) other.cut();
    }
    all.add(newest);
  }

  #leave(instance: string, attachment: Attachment): void {
    const all = this.#attached.get(instance);
    all?.delete(attachment);
    if (all?.size === 0) this.#attached.delete(instance);
  }

  #count(instance: string): number {
    return this.#attached.get(instance)?.size ?? 0;
  }
}
