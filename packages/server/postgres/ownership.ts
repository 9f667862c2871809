/** Holds a server that is ours: watches it, restarts it when it ends by itself, and ends it. */
import { acquire, type Seat } from './acquire.ts';
import { type Session, tryConnect } from './connect.ts';
import { endPostmaster, logFile, type Site } from './postmaster.ts';
import { removeTemporarySocketFolder } from './socket-folder.ts';

const mostRestarts = 3;
const restartWindowMs = 60_000;
const heartbeatMs = 5_000;

export interface OwnershipOptions {
  readonly role: 'service' | 'command';
  readonly waitMs: number;
  readonly say: (line: string) => void;
  readonly onCrash: (error: Error) => void;
}

const toError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

export class Ownership {
  readonly #site: Site;
  readonly #options: OwnershipOptions;
  readonly #seat: Seat = {};
  readonly #ending = new AbortController();
  #lock: Session | undefined;
  #recovery: Promise<void> = Promise.resolve();
  #restarts: number[] = [];
  #heartbeat: NodeJS.Timeout | undefined;
  #ended: Promise<void> | undefined;

  constructor(site: Site, options: OwnershipOptions) {
    this.#site = site;
    this.#options = options;
  }

  async begin(): Promise<void> {
    try {
      await this.#take();
    } catch (error) {
      if (this.#seat.started?.running()) await endPostmaster(this.#site, this.#seat.started);
      throw error;
    }
    if (this.#lock === undefined) return;
    this.#heartbeat = setInterval(() => void this.#hurryShutdown(), heartbeatMs);
    this.#heartbeat.unref();
  }

  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#ending.abort();
    await this.#recovery;
    if (this.#lock === undefined && !this.#seat.started?.running()) return;
    await endPostmaster(this.#site, this.#seat.started);
    // Held until here: nobody else takes the server for an orphan while it shuts down.
    await this.#lock?.client.end();
    await this.#lock?.ended;
    await removeTemporarySocketFolder(this.#site.socket);
  }

  async #take(): Promise<void> {
    const lock = await acquire(this.#site, this.#seat, {
      ...this.#options,
      signal: this.#ending.signal,
    });
    this.#lock = lock;
    // The lock's connection ends with its server, whether we started that server or adopted it.
    void lock?.ended.then(() => this.#lost());
  }

  #lost(): void {
    if (this.#ending.signal.aborted) return;
    this.#lock = undefined;
    this.#recovery = this.#recover();
  }

  async #recover(): Promise<void> {
    const now = Date.now();
    this.#restarts = [...this.#restarts.filter((at) => now - at < restartWindowMs), now];
    try {
      if (this.#restarts.length > mostRestarts) {
        throw new Error(
          `The database server ended ${this.#restarts.length} times within a minute; its log is ${logFile(this.#site)}`,
        );
      }
      this.#options.say('The database server ended by itself; starting it again.');
      await this.#take();
    } catch (error) {
      if (!this.#ending.signal.aborted) this.#options.onCrash(toError(error));
    }
  }

  /**
   * A server that somebody sends SIGTERM takes no new connections and waits for the open ones to end,
   * ours among them, so for ever. It is told not to wait, and the restart follows.
   */
  async #hurryShutdown(): Promise<void> {
    if (this.#lock === undefined) return;
    const answer = await tryConnect(this.#site.socket.path).catch(() => undefined);
    if (answer?.kind === 'ready') await answer.session.client.end();
    if (this.#ending.signal.aborted || answer?.kind !== 'busy') return;
    if (!answer.reason.includes('shutting down')) return;
    await endPostmaster(this.#site, this.#seat.started).catch(() => {});
  }
}
