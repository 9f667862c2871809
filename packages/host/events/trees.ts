// The trees of one computer that event streams watch: each asked of the agent once, however many streams
// want it, asked again of every agent that connects, and let go with its last stream.

import { setTimeout as pause } from 'node:timers/promises';
import type { WatchNews } from '@cubicle/contract/guest/messages.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type { Bucket } from '../guest/bucket.ts';
import type { GuestLinks } from '../guest/links.ts';

interface Tree {
  streams: number;
  armed: boolean;
  readonly ending: AbortController;
}

/** An agent that refused, or a link that broke, is given this long. */
const againMs = 250;
/** While a guest has told more than it may, it is read this seldom. */
const restMs = 50;

export class Trees {
  readonly #instance: string;
  readonly #links: Pick<GuestLinks, 'whenConnected' | 'watchTree'>;
  readonly #budget: Bucket;
  readonly #tell: (tree: string, news: WatchNews) => void;
  readonly #trees = new Map<string, Tree>();

  constructor(
    instance: string,
    links: Pick<GuestLinks, 'whenConnected' | 'watchTree'>,
    budget: Bucket,
    tell: (tree: string, news: WatchNews) => void,
  ) {
    this.#instance = instance;
    this.#links = links;
    this.#budget = budget;
    this.#tell = tell;
  }

  /** Whether these may be watched besides what is. */
  hasRoomFor(paths: readonly string[]): boolean {
    const further = paths.filter((path) => !this.#trees.has(path));
    return this.#trees.size + further.length <= limits.treesPerComputer;
  }

  /** Each is to be named once. Returns what lets them go. */
  watch(paths: readonly string[]): () => void {
    for (const path of paths) {
      const tree = this.#trees.get(path);
      if (tree === undefined) this.#begin(path);
      else tree.streams += 1;
    }
    return () => {
      for (const path of paths) this.#letGo(path);
    };
  }

  armed(path: string): boolean {
    return this.#trees.get(path)?.armed === true;
  }

  close(): void {
    for (const { ending } of this.#trees.values()) ending.abort();
    this.#trees.clear();
  }

  #begin(path: string): void {
    const tree = { streams: 1, armed: false, ending: new AbortController() };
    this.#trees.set(path, tree);
    void this.#keep(path, tree);
  }

  #letGo(path: string): void {
    const tree = this.#trees.get(path);
    if (tree === undefined) return;
    tree.streams -= 1;
    if (tree.streams > 0) return;
    this.#trees.delete(path);
    tree.ending.abort();
  }

  async #keep(path: string, tree: Tree): Promise<void> {
    const { signal } = tree.ending;
    while (!signal.aborted) {
      // Whatever ends it, an agent that left or the guest that stopped: the next one is asked again.
      await this.#once({ signal }, path, tree).catch(() => {});
      tree.armed = false;
      await pause(againMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  async #once(context: Context, path: string, tree: Tree): Promise<void> {
    await this.#links.whenConnected(context, this.#instance);
    const watched = await this.#links.watchTree(context, this.#instance, path);
    if (!watched.ok) return;
    for await (const news of watched.news) {
      // A guest that tells more than it may is held back, and its agent tells the flood.
      while (!this.#budget.take()) await pause(restMs, undefined, { ...context, ref: false });
      if (context.signal.aborted) return;
      if ('armed' in news) tree.armed = true;
      if ('lost' in news && news.lost !== 'flood') tree.armed = false;
      this.#tell(path, news);
    }
  }
}
