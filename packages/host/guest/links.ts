// The links of a host to the agents in its guests: what the host daemon calls. Everything that waits takes
// a context first; what a guest says is checked, bounded and never believed beyond its own computer.

import type { ScreenshotAsk } from '@cubicle/contract/guest/desktop.ts';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  type FileRange,
  type GuestRequest,
  type Listing,
  type Refusal,
  type SecretsBody,
  type TerminalAnswer,
  terminalAnswer,
  type WatchNews,
} from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import {
  type CommandRequest,
  exec,
  type ExecResult,
  kill,
  type Offsets,
  type OutputRead,
  poll,
  type Polled,
  readOutput,
  start,
} from './exec.ts';
import {
  askDesktop,
  type Screenshot,
  takeScreenshot,
  type Told,
  type ToldWant,
} from './desktop.ts';
import type { Clock, Execution } from './executions.ts';
import { listFiles, type ReadFile, readFile, writeFile } from './files.ts';
import { type Answered, Guest, type GuestEvent } from './guest.ts';
import { screen } from './screen.ts';
import { type Failed, noAgent, type Result } from './result.ts';
import { deliverSecrets } from './secrets.ts';
import { watchTree } from './watch.ts';

export interface GuestLinksOptions {
  /** Told at once, in order; it must not throw. */
  readonly tell?: (id: string, event: GuestEvent) => void;
  readonly clock?: Clock;
  readonly helloMs?: number;
  readonly restMs?: number;
}

const steadyClock: Clock = { now: () => performance.now(), date: () => new Date() };

export class GuestLinks {
  readonly #options: GuestLinksOptions;
  readonly #guests = new Map<string, Guest>();

  constructor(options: GuestLinksOptions = {}) {
    this.#options = options;
  }

  /** Listens at `agent.sock` in this folder, which the guest sees and must not be able to write to. */
  async open(id: string, linkDir: string): Promise<void> {
    if (this.#guests.has(id)) return;
    const { tell = () => {}, clock = steadyClock, helloMs = 5_000, restMs = 1_000 } = this.#options;
    const guest: Guest = new Guest(linkDir, clock, { helloMs, restMs }, (event) => {
      // Nothing is heard of a computer after it was let go.
      if (this.#guests.get(id) === guest) tell(id, event);
    });
    this.#guests.set(id, guest);
    try {
      await guest.open();
    } catch (error) {
      this.#guests.delete(id);
      throw error;
    }
  }

  /** Forgets the computer: its connection, its executions. */
  async close(id: string): Promise<void> {
    const guest = this.#guests.get(id);
    if (guest === undefined) return;
    this.#guests.delete(id);
    this.#options.tell?.(id, { type: 'gone' });
    await guest.close();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#guests.keys()].map((id) => this.close(id)));
  }

  /** The guest no longer runs: what ran in it is lost. Its agent may connect again when it is started. */
  stopped(id: string): void {
    this.#guests.get(id)?.executions.lose();
  }

  connected(id: string): boolean {
    return this.#guests.get(id)?.connected === true;
  }

  /** The desktop accepts input. */
  ready(id: string): boolean {
    return this.#guests.get(id)?.ready === true;
  }

  /** The last delivery of secrets that the guest holds; undefined while its agent is away. */
  secrets(id: string): number | undefined {
    return this.#guests.get(id)?.secrets;
  }

  async deliver(context: Context, id: string, body: SecretsBody): Promise<Result<object>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : deliverSecrets(context, guest, body);
  }

  /** Commands run in its background. */
  busy(id: string): boolean {
    return this.#guests.get(id)?.executions.busy === true;
  }

  async whenConnected(context: Context, id: string): Promise<void> {
    const guest = this.#known(id);
    await guest.until(context, () => guest.connected);
  }

  async whenReady(context: Context, id: string): Promise<void> {
    const guest = this.#known(id);
    await guest.until(context, () => guest.ready);
  }

  async ping(context: Context, id: string): Promise<Result<object>> {
    return this.#guests.get(id)?.ping(context) ?? noAgent;
  }

  async exec(
    context: Context,
    id: string,
    request: CommandRequest,
    timeoutMs: number,
  ): Promise<Result<ExecResult>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : exec(context, guest, request, timeoutMs);
  }

  async execStart(
    context: Context,
    id: string,
    request: CommandRequest,
  ): Promise<Result<{ readonly execution: Execution }>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : start(context, guest, request);
  }

  async poll(context: Context, id: string, pid: number): Promise<Result<Polled>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : poll(context, guest, pid);
  }

  async kill(context: Context, id: string, pid: number): Promise<Result<Polled>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : kill(context, guest, pid);
  }

  /** From memory; nothing is asked of the guest. */
  execution(id: string, executionId: string): Execution | undefined {
    return this.#guests.get(id)?.executions.byId(executionId);
  }

  async readOutput(
    context: Context,
    id: string,
    executionId: string,
    offsets: Offsets,
  ): Promise<Result<OutputRead>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : readOutput(context, guest, executionId, offsets);
  }

  async readFile(
    context: Context,
    id: string,
    path: string,
    range: FileRange | null = null,
  ): Promise<Result<ReadFile>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : readFile(context, guest, path, range);
  }

  async writeFile(
    context: Context,
    id: string,
    path: string,
    options: { readonly createOnly: boolean },
    source: AsyncIterable<Uint8Array>,
  ): Promise<Result<{ readonly bytes: number }>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : writeFile(context, guest, path, options, source);
  }

  async listFiles(context: Context, id: string, path: string): Promise<Result<Listing>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : listFiles(context, guest, path);
  }

  async desktop<Want extends ToldWant>(
    context: Context,
    id: string,
    want: Want,
    ask: Parameters<typeof askDesktop<Want>>[3],
  ): Promise<Result<{ readonly told: Told<Want> }>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : askDesktop(context, guest, want, ask);
  }

  async screenshot(context: Context, id: string, ask: ScreenshotAsk): Promise<Result<Screenshot>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : takeScreenshot(context, guest, ask);
  }

  /** What the desktop's VNC server says, and says it to. */
  async screen(context: Context, id: string): Promise<Result<{ readonly channel: Channel }>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : screen(context, guest);
  }

  /** An attachment to a terminal: the caller owns its channel, which lasts no longer than the signal. */
  async terminal(
    context: Context,
    id: string,
    request: Extract<GuestRequest, { op: 'terminal' }>,
    refused: (refusal: Refusal) => Failed,
  ): Promise<Result<Answered<TerminalAnswer>>> {
    const guest = this.#guests.get(id);
    if (guest === undefined) return noAgent;
    return guest.ask(context, request, terminalAnswer, refused, async () => {});
  }

  /** News of a tree until the signal aborts or the agent goes away, whichever throws. */
  async watchTree(
    context: Context,
    id: string,
    tree: string,
  ): Promise<Result<{ readonly news: AsyncIterable<WatchNews> }>> {
    const guest = this.#guests.get(id);
    return guest === undefined ? noAgent : watchTree(context, guest, tree);
  }

  #known(id: string): Guest {
    const guest = this.#guests.get(id);
    if (guest === undefined) throw new Error('no link was opened for this computer');
    return guest;
  }
}
