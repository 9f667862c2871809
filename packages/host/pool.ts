// Computers booted before anybody asks for them: a create takes one, gives it its size and its name, and
// answers with the desktop up. Few, and only while the machine has memory to spare.

import { freemem, totalmem } from 'node:os';
import { defaultResolution } from '@cubicle/contract/computer-fields.ts';
import type { Context, Engine, Instance, Shape } from './engine/engine.ts';
import type { GuestLinks } from './guest/links.ts';
import { labelsOf, newInstanceId, removeInstance, specOf } from './instances.ts';
import type { LinkFolders } from './link-folder.ts';

export interface PoolParts {
  readonly engine: Engine;
  readonly links: GuestLinks;
  readonly folders: LinkFolders;
  readonly agentDir: string;
  /** The digest of the image that its computers are made from. */
  readonly image: string;
  /** How many wait at most; 0 switches the pool off. */
  readonly size: number;
  readonly log: (problem: unknown) => void;
}

/** The smallest that any computer has: it grows when it is taken. */
const waiting: Shape = { cpu: 1, ramMb: 1_024, diskGb: 10 };
const readyMs = 120_000;
/** Whoever creates comes first: the pool fills when nobody has for a moment. */
const quietMs = 1_500;
/** Of the machine's memory, what must be free for another one to be booted. */
const spareShare = 0.2;

export class Pool {
  readonly #parts: PoolParts;
  readonly #ready: string[] = [];
  readonly #ending = new AbortController();
  #filling: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /** One whose desktop is up, from now on the caller's; undefined when none waits. */
  take(image: string, resolution: string): string | undefined {
    if (image !== this.#parts.image || resolution !== defaultResolution) return undefined;
    const { links } = this.#parts;
    const at = this.#ready.findIndex((id) => links.ready(id));
    return at < 0 ? undefined : this.#ready.splice(at, 1)[0];
  }

  /** How many a create would take now. */
  get waiting(): number {
    return this.#ready.filter((id) => this.#parts.links.ready(id)).length;
  }

  /** One that an earlier daemon left: kept if it is of today's image and runs, deleted otherwise. */
  async adopt(context: Context, instance: Instance): Promise<void> {
    const { links, folders, image, size } = this.#parts;
    const { id, status } = instance;
    const { resolution, image: own } = labelsOf(instance);
    if (status !== 'running' || own !== image || this.#ready.length >= size) {
      return removeInstance(context, this.#parts, id);
    }
    await links.open(id, await folders.describe({ id, resolution, hostname: id }));
    this.#ready.push(id);
  }

  /** Fills the pool once no create has come for a moment. */
  fillSoon(): void {
    if (this.#parts.size === 0 || this.#ending.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#filling = this.#filling.then(() => this.#fill()).catch(this.#parts.log);
    }, quietMs);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#ending.abort();
    await this.#filling;
  }

  async #fill(): Promise<void> {
    const { size } = this.#parts;
    await this.#weed();
    while (this.#ready.length < size && freemem() > totalmem() * spareShare) {
      if (this.#ending.signal.aborted) return;
      await this.#add();
    }
  }

  async #add(): Promise<void> {
    const { engine, links, folders, agentDir, image } = this.#parts;
    const id = newInstanceId();
    const context = {
      signal: AbortSignal.any([this.#ending.signal, AbortSignal.timeout(readyMs)]),
    };
    try {
      const resolution = defaultResolution;
      const linkDir = await folders.describe({ id, resolution, hostname: id });
      await links.open(id, linkDir);
      const labels = { computer: '', operation: '', resolution, image };
      await engine.create(
        context,
        specOf({ id, shape: waiting, labels, linkDir, agentDir }),
        image,
      );
      await engine.start(context, id);
      await links.whenReady(context, id);
      this.#ready.push(id);
    } catch (error) {
      await this.#discard(id);
      if (!this.#ending.signal.aborted) throw error;
    }
  }

  /** Those whose guest has ended or fallen silent are of no use to anybody. */
  async #weed(): Promise<void> {
    const { links } = this.#parts;
    for (const id of this.#ready.filter((waits) => !links.ready(waits))) {
      this.#ready.splice(this.#ready.indexOf(id), 1);
      await this.#discard(id);
    }
  }

  async #discard(id: string): Promise<void> {
    try {
      await removeInstance({ signal: AbortSignal.timeout(readyMs) }, this.#parts, id);
    } catch (error) {
      this.#parts.log(error);
    }
  }
}
