// Changes of one tree that are yet to be told: what became of each path, and no more than fit.

import type { FileChange, WatchNews } from '@cubicle/contract/guest/messages.ts';

type Kind = FileChange['kind'];

/** Paths, and the characters in them: a flood takes no more memory than this. */
const most = { paths: 1_024, characters: 256 * 1024 };

/** What happened to a path before and what happens now, in one word. */
export function coalesced(before: Kind | undefined, now: Kind): Kind {
  // Whatever was created and written is new, and what is gone stays gone until it is created again.
  return now === 'modified' ? (before ?? now) : now;
}

interface Change {
  readonly kind: Kind;
  readonly dir: boolean;
  /** Before that a directory went, and all that was in it. */
  readonly emptied: boolean;
}

export class Pending {
  /** In the order in which they last came or went. */
  readonly #changes = new Map<string, Change>();
  #characters = 0;
  #flooded = false;

  get empty(): boolean {
    return this.#changes.size === 0 && !this.#flooded;
  }

  add(path: string, now: Kind, dir: boolean): void {
    // Whoever hears of the flood looks at everything again.
    if (this.#flooded) return;
    const before = this.#changes.get(path);
    const emptied =
      before !== undefined && (before.emptied || (before.kind === 'deleted' && before.dir));
    if (before === undefined) this.#characters += path.length;
    else if (now !== 'modified') this.#changes.delete(path);
    this.#changes.set(path, { kind: coalesced(before?.kind, now), dir, emptied });
    if (this.#changes.size > most.paths || this.#characters > most.characters) this.flood();
  }

  flood(): void {
    this.#clear();
    this.#flooded = true;
  }

  take(): WatchNews[] {
    const news: WatchNews[] = [...this.#changes].flatMap(([path, change]) => told(path, change));
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

/** What came in the place of a directory would else seem to have in it what that had. */
function told(path: string, { kind, dir, emptied }: Change): FileChange[] {
  if (kind === 'deleted') return [{ path, kind, dir: dir || emptied }];
  return [...(emptied ? [{ path, kind: 'deleted', dir: true } as const] : []), { path, kind, dir }];
}
