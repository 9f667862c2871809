// Changes of one tree that are yet to be told: one for each path, and no more than fit.

import type { FileChange, WatchNews } from '@cubicle/contract/guest/messages.ts';

type Kind = FileChange['kind'];

/** Paths, and the characters in them: a flood takes no more memory than this. */
const most = { paths: 1_024, characters: 256 * 1024 };

/** What happened to a path before and what happens now, in one word. */
export function coalesced(before: Kind | undefined, now: Kind): Kind {
  // Whatever was created and written is new, and what is gone stays gone until it is created again.
  return now === 'modified' ? (before ?? now) : now;
}

export class Pending {
  /** In the order in which they last came or went. */
  readonly #changes = new Map<string, { readonly kind: Kind; readonly dir: boolean }>();
  #characters = 0;
  #flooded = false;

  get empty(): boolean {
    return this.#changes.size === 0 && !this.#flooded;
  }

  add(path: string, now: Kind, dir: boolean): void {
    // Whoever hears of the flood looks at everything again.
    if (this.#flooded) return;
    const before = this.#changes.get(path);
    const kind = coalesced(before?.kind, now);
    if (before === undefined) this.#characters += path.length;
    else if (before.kind !== kind) this.#changes.delete(path);
    this.#changes.set(path, { kind, dir });
    if (this.#changes.size > most.paths || this.#characters > most.characters) this.flood();
  }

  flood(): void {
    this.#clear();
    this.#flooded = true;
  }

  take(): WatchNews[] {
    const news: WatchNews[] = [...this.#changes].map(([path, change]) => ({ path, ...change }));
    if (this.#flooded) news.push({ lost: 'flood' });
    this.#clear();
    this.#flooded = false;
    return news;
  }

  #clear(): void {
    this.#changes.clear();
    this.#characters = 0;
  }
}
