// Reads what happens on the hosts into the queue. One process reads a host at a time; a page's deliveries and
// its cursor are one transaction, so that whoever reads on after a crash begins exactly behind it.

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { HostEventPage } from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Database } from '../db/database.ts';
import { cursorOf, holdReader, queueEvents, releaseReaders } from '../db/event-intake.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host } from '../hosts/host.ts';

export interface IntakeParts {
  readonly database: Database;
  readonly fleet: Pick<Fleet, 'hosts'>;
  readonly date: () => Date;
  readonly log: (problem: unknown) => void;
}

/** How long a host is asked to wait for news; less than a reader holds its place. */
const waitMs = 4_000;
const pageEvents = 500;
/** Before a host that does not answer, or that another process reads, is asked again. */
const againMs = 1_000;
const hostsMs = 2_000;
const hourMs = 3_600_000;

export class Intake {
  readonly #parts: IntakeParts;
  readonly #holder = randomBytes(8).toString('hex');
  readonly #ending = new AbortController();
  readonly #reading = new Map<string, Promise<void>>();
  readonly #away = new Set<string>();
  #watching: Promise<void> | undefined;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await Promise.all([this.#watching, ...this.#reading.values()]);
    await releaseReaders(this.#parts.database, this.#holder).catch(this.#parts.log);
  }

  /** A reader for each host there is. */
  async #watch(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const hosts = await this.#parts.fleet.hosts().catch((): Host[] => []);
      for (const host of hosts) {
        if (this.#reading.has(host.id) || signal.aborted) continue;
        const reading = this.#read(host).finally(() => this.#reading.delete(host.id));
        this.#reading.set(host.id, reading);
      }
      await this.#pause(hostsMs);
    }
  }

  /** Until it is no longer ours to read, or does not answer. */
  async #read(host: Host): Promise<void> {
    const { signal } = this.#ending;
    try {
      while (!signal.aborted && (await holdReader(this.#parts.database, host.id, this.#holder))) {
        // Read anew each time: where another process went on, this is known here.
        const from = await cursorOf(this.#parts.database, host.id);
        const page = await host.events(from, { waitMs, most: pageEvents, signal });
        this.#away.delete(host.id);
        if (page.cursor !== from || page.events.length > 0) await this.#queue(host.id, from, page);
      }
    } catch (error) {
      // A host that stays away is told once.
      if (!signal.aborted && !this.#away.has(host.id)) this.#parts.log(error);
      this.#away.add(host.id);
    }
    await this.#pause(againMs);
  }

  async #queue(hostId: string, from: string | undefined, page: HostEventPage): Promise<void> {
    const now = this.#parts.date();
    const events = page.events.map((event) => ({ ...event, at: new Date(event.at) }));
    const planEndedSince = new Date(now.getTime() - limits.webhookHours * hourMs);
    const { cursor } = page;
    await queueEvents(this.#parts.database, { hostId, from, cursor, events, planEndedSince }, now);
  }

  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#ending.signal, ref: false }).catch(() => {});
  }
}
