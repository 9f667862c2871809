// One computer's agent as the host sees it: who is connected, whether the desktop is ready, and which
// commands run in the background.

import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import type {
  AgentEvent,
  AgentHello,
  DesktopReport,
  ForeignHello,
  GuestRequest,
} from '@cubicle/contract/guest/messages.ts';
import { decodeMessage, type Refusal, refusal } from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { ProtocolError, type Violation } from '@cubicle/contract/guest/protocol-error.ts';
import type { Shape } from '@cubicle/contract/guest/shape.ts';
import { guestProtocol } from '@cubicle/contract/guest/sizes.ts';
import type { AgentLink } from './agent-link.ts';
import { Door, type DoorOptions } from './door.ts';
import { type Clock, type Execution, Executions } from './executions.ts';
import { type Failed, linkBusy, noAgent, outcome, type Result } from './result.ts';

export type GuestEvent =
  | { readonly type: 'agent'; readonly connected: true; readonly bootId: string }
  | { readonly type: 'agent'; readonly connected: false }
  | { readonly type: 'desktop'; readonly ready: boolean }
  /** What the watcher of the desktop tells, as far as its shape goes. */
  | { readonly type: 'report'; readonly report: DesktopReport }
  /** The host lets go of the computer. */
  | { readonly type: 'gone' }
  /** It exited or was lost. */
  | { readonly type: 'execution'; readonly execution: Execution }
  /** The guest broke the protocol; the connection is gone. For a log. */
  | { readonly type: 'violation'; readonly violation: Violation; readonly message: string };

export interface Answered<T> {
  readonly channel: Channel;
  readonly answer: T;
  /** What follows makes no sense: the connection ends, as it does after a wrong frame. */
  readonly fault: (message: string) => never;
}

export class Guest {
  readonly executions: Executions;
  readonly #door: Door;
  readonly #tell: (event: GuestEvent) => void;
  #link: AgentLink | undefined;
  #ready = false;
  #secrets = 0;
  #change = Promise.withResolvers<void>();

  constructor(
    folder: string,
    clock: Clock,
    door: Omit<DoorOptions, 'now'>,
    tell: (event: GuestEvent) => void,
  ) {
    this.#tell = tell;
    this.executions = new Executions(clock, (execution) => tell({ type: 'execution', execution }));
    this.#door = new Door(
      folder,
      {
        hello: (link, hello) => this.#greet(link, hello),
        event: (link, event) => this.#hear(link, event),
        closed: (link, cause) => this.#lost(link, cause),
      },
      { ...door, now: clock.now },
    );
  }

  get connected(): boolean {
    return this.#link !== undefined;
  }

  /** The desktop accepts input, as far as its agent says. */
  get ready(): boolean {
    return this.#link !== undefined && this.#ready;
  }

  /** The last delivery of secrets that it holds, as far as its agent says; undefined without one. */
  get secrets(): number | undefined {
    return this.#link === undefined ? undefined : this.#secrets;
  }

  /** The agent that is connected now has taken this delivery. */
  holds(serial: number): void {
    this.#secrets = serial;
  }

  open(): Promise<void> {
    return this.#door.open();
  }

  async close(): Promise<void> {
    await this.#door.close();
  }

  async until(context: Context, holds: () => boolean): Promise<void> {
    while (!holds()) await unlessAborted(context, this.#change.promise);
  }

  /** Asks, sends what belongs to the request, and waits for the agent's answer of this shape. */
  async ask<T>(
    context: Context,
    request: GuestRequest,
    shape: Shape<T>,
    refused: (refusal: Refusal) => Failed,
    send: (channel: Channel) => Promise<void> = async (channel) => channel.end(),
  ): Promise<Result<Answered<T>>> {
    context.signal.throwIfAborted();
    const link = this.#link;
    if (link === undefined) return noAgent;
    try {
      const channel = link.ask(context, request);
      if (channel === undefined) return linkBusy;
      await send(channel);
      const { accepted, payload } = await channel.answer();
      if (!accepted) return refused(decodeMessage(payload, refusal));
      const answer = decodeMessage(payload, shape);
      const fault = (message: string): never => {
        const error = new ProtocolError('message', message);
        link.end(error);
        throw error;
      };
      return { ok: true, channel, answer, fault };
    } catch (error) {
      if (error instanceof ProtocolError) link.end(error);
      return outcome(error);
    }
  }

  async ping(context: Context): Promise<Result<object>> {
    context.signal.throwIfAborted();
    if (this.#link === undefined) return noAgent;
    try {
      await this.#link.ping(context);
      return { ok: true };
    } catch (error) {
      return outcome(error);
    }
  }

  /** Whoever greets last is the agent: it may have been restarted before its old connection ended. */
  #greet(link: AgentLink, hello: AgentHello | ForeignHello): void {
    if (!('boot_id' in hello) || hello.protocol !== guestProtocol) return link.dismiss();
    const before = this.#link;
    this.#link = link;
    this.#secrets = hello.secrets;
    before?.end(new ChannelFailure('lost', 'another agent took its place'));
    if (before !== undefined) this.#tell({ type: 'agent', connected: false });
    link.welcome(this.executions.reconcile(hello.running, hello.exited));
    this.#tell({ type: 'agent', connected: true, bootId: hello.boot_id });
    this.#setReady(hello.desktop_ready);
  }

  #hear(link: AgentLink, event: AgentEvent): void {
    if (link !== this.#link) return;
    if (event.type === 'desktop') this.#setReady(event.ready);
    else if (event.type === 'exited') this.executions.exited(event.execution_id, event.exit_code);
    else this.#tell({ type: 'report', report: event });
  }

  #lost(link: AgentLink, cause: Error): void {
    if (cause instanceof ProtocolError) {
      this.#tell({ type: 'violation', violation: cause.violation, message: cause.message });
    }
    if (link !== this.#link) return;
    this.#link = undefined;
    // First: an agent that is away says nothing of the desktop, which may go on.
    this.#tell({ type: 'agent', connected: false });
    this.#setReady(false);
  }

  #setReady(ready: boolean): void {
    if (ready !== this.#ready) this.#tell({ type: 'desktop', ready });
    this.#ready = ready;
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
