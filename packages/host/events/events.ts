// The events of this host's computers: told from all sides, kept for a while, passed to those who listen.

import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import type { HostEvent, HostEventPage } from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Clock } from '../guest/executions.ts';
import type { GuestEvent } from '../guest/guest.ts';
import type { GuestLinks } from '../guest/links.ts';
import { statuses } from '../instances.ts';
import type { Roster } from '../roster.ts';
import { refusals, type StreamRefusal, treesOf } from './admission.ts';
import { ComputerEvents } from './computer-events.ts';
import { gap, helloFrame } from './frames.ts';
import { Journal } from './journal.ts';
import { signalsPage } from './signals.ts';
import type { StreamSocket } from './subscriber.ts';

export interface StreamRequest {
  readonly computer: string;
  readonly account: string;
  /** A cursor to go on from. */
  readonly since?: string | undefined;
  /** As the caller wrote them. */
  readonly watches: readonly string[];
}

/** An admitted stream, which has its place from here on. */
export interface Subscription {
  /** Once the socket can be written to: sends the hello and what follows. */
  begin(): void;
  /** The reader takes more. */
  drained(): void;
  /** The socket is gone. May be called more than once, also after `close`. */
  end(): void;
}

export type Subscribed =
  | { readonly ok: true; readonly subscription: Subscription }
  | { readonly ok: false; readonly refusal: StreamRefusal };

export interface JournalRequest {
  /** The cursor of the page before; undefined for the first. */
  readonly after: string | undefined;
  readonly waitMs: number;
  readonly most: number;
}

interface Parts {
  readonly roster: Pick<Roster, 'get' | 'computerOf'>;
  readonly links: Pick<GuestLinks, 'whenConnected' | 'watchTree' | 'ready'>;
  readonly clock?: Clock;
}

const steadyClock: Clock = { now: () => performance.now(), date: () => new Date() };
const gone = 'This host no longer has the computer.';
const ending = 'The host is restarting. Reconnect with the last cursor.';
const lostUnread = 'Events were lost before they could be passed on. List what you need to know.';
const hostRestarted =
  'The host was restarted: events may have been lost. List what you need to know.';
const notHeld = 'Events before this stream are no longer held. List what you need to know.';

export class Events {
  readonly #parts: Parts;
  /** By instance: those of the pool have windows and a desktop before they have a name. */
  readonly #computers = new Map<string, ComputerEvents>();
  readonly #streamsOf = new Map<string, number>();
  readonly #journal = new Journal();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** What a link tells. */
  heard(instance: string, event: GuestEvent): void {
    if (event.type === 'gone') this.#forget(instance);
    else this.#of(instance).hear(event);
  }

  /** As it was when the daemon started. */
  found(instance: string, status: ComputerStatus): void {
    this.#of(instance).found(status);
  }

  /** It is being made, or moved into. */
  building(instance: string): void {
    this.#of(instance).building();
  }

  /** As the engine has it; without effect where nothing changed. */
  became(instance: string, status: ComputerStatus): void {
    this.#computers.get(instance)?.became(status);
  }

  restarted(instance: string): void {
    this.#computers.get(instance)?.restarted();
  }

  idle(instance: string, seconds: number): void {
    this.#computers.get(instance)?.idle(seconds);
  }

  /** Forgotten when its link is closed. */
  #of(instance: string): ComputerEvents {
    const known = this.#computers.get(instance);
    if (known !== undefined) return known;
    const { roster, links, clock = steadyClock } = this.#parts;
    const computer = () => roster.computerOf(instance);
    const note = this.#journal.note.bind(this.#journal);
    const made = new ComputerEvents({ instance, computer, links, clock, note });
    this.#computers.set(instance, made);
    return made;
  }

  /** Nothing when this host has no such computer. */
  signals(computer: string, since: string, limit: number): string | undefined {
    const events = this.#computers.get(this.#parts.roster.get(computer)?.instance ?? '');
    return events && signalsPage(computer, events.stream, since, limit);
  }

  /** A page of what happened to all of them, for the control plane; waits for news where there are none. */
  async journal(
    { after, waitMs, most }: JournalRequest,
    signal: AbortSignal,
  ): Promise<HostEventPage> {
    const page = () =>
      this.#journal.page(after, most, {
        lost: (computer, cursor) => this.#gapEvent(computer, cursor, lostUnread),
        everybody: (which) => this.#gapsOf(which),
      });
    const now = page();
    if (now.events.length > 0 || now.cursor !== after) return now;
    await this.#journal.news(waitMs, signal);
    return page();
  }

  /** At the beginning of what this daemon saw of them. */
  #gapsOf(which: 'all' | 'found'): HostEvent[] {
    return [...this.#computers].flatMap(([instance, events]) => {
      const computer = this.#parts.roster.computerOf(instance);
      if (computer === undefined || (which === 'found' && !events.wasFound)) return [];
      return [this.#gapEvent(computer, events.stream.history.cursor(0), hostRestarted)];
    });
  }

  #gapEvent(computer: string, cursor: string, detail: string): HostEvent {
    const { clock = steadyClock, roster } = this.#parts;
    const history = this.#computers.get(roster.get(computer)?.instance ?? '')?.stream.history;
    const at = clock.date();
    const frame = gap({ at, computer, cursor }, history?.cursor(history.oldest), detail);
    return { type: 'gap', computer, cursor, at: at.toISOString(), body: JSON.stringify(frame) };
  }

  subscribe(request: StreamRequest, socket: StreamSocket): Subscribed {
    const { computer, account, watches } = request;
    const trees = treesOf(watches);
    if (!Array.isArray(trees)) return { ok: false, refusal: trees };
    const resident = this.#parts.roster.get(computer);
    const events = resident && this.#computers.get(resident.instance);
    if (resident === undefined || events === undefined) {
      return { ok: false, refusal: refusals.absent };
    }
    const refusal = this.#refusal(events, statuses[resident.status], account, trees);
    if (refusal !== undefined) return { ok: false, refusal };

    this.#streamsOf.set(account, this.#streams(account) + 1);
    const letGo = events.trees.watch(trees);
    const subscriber = events.stream.add(socket, () => {
      letGo();
      this.#oneLess(account);
    });
    const begin = () => {
      const { frames, position } = firstFrames(events, request, trees);
      subscriber.begin(frames, position);
    };
    const subscription = {
      begin,
      drained: () => subscriber.drained(),
      end: () => subscriber.end(),
    };
    return { ok: true, subscription };
  }

  /** The daemon ends: those who listen come back to the next one. */
  stop(): void {
    for (const events of this.#computers.values()) events.close(ending);
    this.#computers.clear();
    this.#journal.end();
  }

  #refusal(
    { stream, trees: watched }: ComputerEvents,
    status: ComputerStatus,
    account: string,
    trees: readonly string[],
  ): StreamRefusal | undefined {
    if (status === 'suspended') return refusals.suspended;
    if (status !== 'running') return refusals.notRunning;
    if (stream.size >= limits.streamsPerComputer) return refusals.ofComputer;
    if (this.#streams(account) >= limits.streamsPerAccount) return refusals.ofAccount;
    return watched.hasRoomFor(trees) ? undefined : refusals.trees;
  }

  #streams(account: string): number {
    return this.#streamsOf.get(account) ?? 0;
  }

  #oneLess(account: string): void {
    const left = this.#streams(account) - 1;
    if (left > 0) this.#streamsOf.set(account, left);
    else this.#streamsOf.delete(account);
  }

  #forget(instance: string): void {
    this.#computers.get(instance)?.close(gone);
    this.#computers.delete(instance);
  }
}

/**
 * The hello, and a gap where the cursor is not held. Its cursor is where the stream goes on from, so whoever
 * keeps it misses nothing. Windows are told to those who cannot know them from before.
 */
function firstFrames(
  events: ComputerEvents,
  { computer, since = '', watches }: StreamRequest,
  trees: readonly string[],
): { frames: string[]; position: number } {
  const { history } = events.stream;
  const held = since === '' ? undefined : history.position(since);
  const resumes = held !== undefined && held >= history.oldest;
  const position = resumes ? held : history.head;
  const hello = helloFrame({
    computer,
    cursor: history.cursor(position),
    ready: events.ready,
    events: events.capabilities,
    ...(!resumes && { windows: events.windows() }),
    ...(watches.length > 0 && {
      watching: trees.map((path) => ({ path, armed: events.trees.armed(path) })),
    }),
  });
  if (resumes || since === '') return { frames: [hello], position };
  return { frames: [hello, JSON.stringify(events.stream.gapNow(computer, notHeld))], position };
}
