// What happens to one computer, made into events: what the host does and finds, and what the guest reports,
// which is bounded and believed of this computer alone.

import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import {
  agentEvents,
  daemonEvents,
  desktopEvents,
  type EventType,
} from '@cubicle/contract/events.ts';
import type { DesktopReport, WatchNews } from '@cubicle/contract/guest/messages.ts';
import { Bucket } from '../guest/bucket.ts';
import type { Clock, Execution } from '../guest/executions.ts';
import type { GuestEvent } from '../guest/guest.ts';
import type { GuestLinks } from '../guest/links.ts';
import type { Told } from './journal.ts';
import { Stream } from './stream.ts';
import { Trees } from './trees.ts';
import { WindowPicture } from './windows.ts';

/** What is reported beyond this is not passed on, and a gap says so. All windows twice over fit at once. */
const reports = { atOnce: 1_024, perSecond: 128 };
const files = { atOnce: 4_096, perSecond: 512 };
/** A gap follows what was lost within this time, and gaps come no faster. */
const gapMs = 1_000;

const transitions: Partial<Record<ComputerStatus, EventType>> = {
  running: 'computer.started',
  stopped: 'computer.stopped',
  suspended: 'computer.suspended',
};

export interface ComputerEventsParts {
  readonly instance: string;
  /** Nothing while it waits in the pool. */
  readonly computer: () => string | undefined;
  readonly links: Pick<GuestLinks, 'whenConnected' | 'watchTree' | 'ready'>;
  readonly clock: Clock;
  /** Hears of all that is told of it. */
  readonly note?: ((told: Told) => void) | undefined;
}

export class ComputerEvents {
  readonly stream: Stream;
  readonly trees: Trees;
  readonly #windows = new WindowPicture();
  readonly #parts: ComputerEventsParts;
  readonly #reports: Bucket;
  #status: ComputerStatus | undefined;
  /** What it was before the first transition of this daemon's life is not told. */
  #tellsPrevious = false;
  #wasFound = false;
  #bootId: string | undefined;
  #watcherLives = false;
  /** The boot whose desktop was last told to be ready, until that desktop ends. */
  #readyTold: string | undefined;
  #gapDue: NodeJS.Timeout | undefined;

  constructor(parts: ComputerEventsParts) {
    const { instance, computer, links, clock } = parts;
    this.#parts = parts;
    this.stream = new Stream(computer, clock.date, parts.note);
    this.#reports = new Bucket(reports.atOnce, reports.perSecond, clock.now);
    const budget = new Bucket(files.atOnce, files.perSecond, clock.now);
    this.trees = new Trees(instance, links, budget, (tree, news) => this.#file(tree, news));
  }

  /** The types of events it can have now. */
  get capabilities(): EventType[] {
    return [
      ...daemonEvents,
      ...(this.#bootId === undefined ? [] : agentEvents),
      ...(this.#watcherLives ? desktopEvents : []),
    ];
  }

  get ready(): boolean {
    return this.#parts.links.ready(this.#parts.instance);
  }

  windows(): object[] {
    return this.#windows.list();
  }

  /** As it was found when the daemon started. */
  found(status: ComputerStatus): void {
    this.#status = status;
    this.#wasFound = true;
  }

  /** Whether it was there before this daemon, so that something may have happened unseen. */
  get wasFound(): boolean {
    return this.#wasFound;
  }

  /** It is being made: from here on its transitions are known. */
  building(): void {
    this.#status = 'building';
    this.#tellsPrevious = true;
  }

  /** As the engine has it now; without effect where nothing changed. */
  became(status: ComputerStatus): void {
    const previous = this.#status;
    if (status === previous) return;
    this.#status = status;
    if (status === 'stopped') this.#sessionEnded();
    // What was made and does not run has not stopped.
    if (previous === 'building' && status === 'stopped') return;
    this.#transition(status, previous);
    // One of the pool's was ready before it had a name.
    if (previous === 'building' && this.ready) this.#ready();
  }

  /** Booted again without having been stopped in between. */
  restarted(): void {
    this.#sessionEnded();
    this.#status = 'running';
    this.#transition('running', 'running');
  }

  idle(seconds: number): void {
    this.stream.emit('daemon', 'computer.idle', { idle_seconds: seconds });
  }

  hear(event: GuestEvent): void {
    switch (event.type) {
      case 'agent':
        return this.#agent(event.connected ? event.bootId : undefined);
      case 'desktop':
        if (event.ready) this.#ready();
        // An agent that went away says nothing of the desktop.
        else if (this.#bootId !== undefined) this.#readyTold = undefined;
        return undefined;
      case 'execution':
        return this.#exited(event.execution);
      case 'report':
        return this.#report(event.report);
      default:
        return undefined;
    }
  }

  close(detail: string): void {
    clearTimeout(this.#gapDue);
    this.stream.close(detail);
    this.trees.close();
  }

  #transition(status: ComputerStatus, previous: ComputerStatus | undefined): void {
    const type = transitions[status];
    if (type === undefined) return;
    const told = this.#tellsPrevious && previous !== undefined ? { previous } : {};
    this.#tellsPrevious = true;
    this.stream.emit('daemon', type, { status, ...told });
  }

  /** Its windows went with it, which those who listen know from the transition. */
  #sessionEnded(): void {
    this.#readyTold = undefined;
    this.#windows.clear();
  }

  #agent(bootId: string | undefined): void {
    const before = this.capabilities.length;
    this.#bootId = bootId;
    // It watches anew, if it does.
    this.#watcherLives = false;
    if (this.capabilities.length === before) return;
    const word = bootId === undefined ? 'The computer’s agent is away.' : 'The agent is connected.';
    this.stream.capabilities(this.capabilities, word);
  }

  /** Once for each desktop, however often its agent says so. */
  #ready(): void {
    if (this.#readyTold !== undefined && this.#readyTold === this.#bootId) return;
    this.#readyTold = this.#bootId;
    this.stream.emit('guest', 'computer.ready');
  }

  #exited({ executionId, pid, status, exitCode }: Execution): void {
    const end = status === 'lost' ? { lost: true } : { exit_code: exitCode };
    this.stream.emit('daemon', 'process.exited', { execution_id: executionId, pid, ...end });
  }

  #report(report: DesktopReport): void {
    switch (report.type) {
      case 'watcher':
        return this.#watcher(report.live);
      case 'clipboard.changed':
        return this.#pass('clipboard.changed', { selection: report.selection });
      default:
        for (const { type, data } of this.#windows.take(report)) this.#pass(type, data);
        return undefined;
    }
  }

  #watcher(live: boolean): void {
    if (live) for (const { type, data } of this.#windows.clear()) this.#pass(type, data);
    if (live === this.#watcherLives) return;
    this.#watcherLives = live;
    const word = live ? 'The desktop is watched.' : 'The desktop is not watched.';
    this.stream.capabilities(this.capabilities, word);
  }

  #file(tree: string, news: WatchNews): void {
    if (!('path' in news))
      return this.stream.emit('guest', 'file.changed', { watch: tree, ...news });
    const { path, kind, dir } = news;
    const data = { watch: tree, path, kind, ...(dir && { dir }) };
    return this.stream.emit('guest', 'file.changed', data);
  }

  /** Passed on unless the guest tells too much. */
  #pass(type: EventType, data: object): void {
    if (this.#reports.take()) return this.stream.emit('guest', type, data);
    this.#gapDue ??= setTimeout(() => {
      this.#gapDue = undefined;
      this.stream.lost('The computer reported more than is passed on. List what you need to know.');
    }, gapMs).unref();
    return undefined;
  }
}
