// Which windows the stream has described, and what it says when they change: at most 200, and the focused
// one besides (specification Part 6.2).

import { idOf, isFurniture, type Stack, type WindowInfo } from './window.ts';
import type { DesktopEvent } from './desktop-event.ts';

export const mostDescribed = 200;

/** Describes windows as they are now; those that are gone are left out. */
export type Describe = (
  windows: readonly number[],
  active: number | undefined,
) => Promise<readonly WindowInfo[]>;

export class WindowPicture {
  /** Looked at and there, furniture included, of which the stream tells nothing but the focus. */
  readonly #known = new Set<number>();
  readonly #described = new Set<number>();
  /** Described only because it is focused. */
  #extra: number | undefined;
  #focused: number | undefined;

  /** What has changed since. */
  async update({ windows, active }: Stack, describe: Describe): Promise<DesktopEvent[]> {
    const events = this.#closed(new Set(windows));
    events.push(...this.#leaveExtra(active));
    const room = mostDescribed - this.#known.size;
    const fresh = windows.filter((window) => !this.#known.has(window));
    const looked = fresh.slice(Math.max(0, fresh.length - room));
    const opened = await describe(room > 0 ? looked : [], active);
    for (const window of room > 0 ? looked : []) this.#know(window);
    for (const window of opened) if (!isFurniture(window)) events.push(...this.#open(window));
    events.push(...(await this.#focus(active, describe)));
    return events;
  }

  /** The desktop is gone, and its windows with it. */
  clear(): DesktopEvent[] {
    const events = this.#closed(new Set());
    events.push(...this.#leaveExtra(undefined));
    this.forget();
    return events;
  }

  /** All are told again. */
  forget(): void {
    this.#known.clear();
    this.#described.clear();
    this.#extra = undefined;
    this.#focused = undefined;
  }

  #closed(there: ReadonlySet<number>): DesktopEvent[] {
    for (const window of this.#known) if (!there.has(window)) this.#known.delete(window);
    const gone = [...this.#described].filter((window) => !there.has(window));
    for (const window of gone) this.#described.delete(window);
    if (this.#extra !== undefined && !there.has(this.#extra)) {
      gone.push(this.#extra);
      this.#extra = undefined;
    }
    return gone.map((window) => ({ type: 'window.closed', id: idOf(window) }));
  }

  #leaveExtra(active: number | undefined): DesktopEvent[] {
    const extra = this.#extra;
    if (extra === undefined || extra === active) return [];
    this.#extra = undefined;
    return [{ type: 'window.closed', id: idOf(extra) }];
  }

  #know(window: number): void {
    this.#known.add(window);
  }

  #open(window: WindowInfo): DesktopEvent[] {
    const id = Number(window.id);
    this.#described.add(id);
    // It has been told already.
    if (this.#extra === id) {
      this.#extra = undefined;
      return [];
    }
    return [{ type: 'window.opened', window }];
  }

  async #focus(active: number | undefined, describe: Describe): Promise<DesktopEvent[]> {
    const before = this.#focused;
    if (active === before) return [];
    const [window] = active === undefined ? [] : await describe([active], active);
    if (active === undefined || window === undefined) {
      this.#focused = undefined;
      return before === undefined ? [] : [{ type: 'window.blurred', id: idOf(before) }];
    }
    this.#focused = active;
    const focused: DesktopEvent = { type: 'window.focused', window };
    if (this.#known.has(active) || isFurniture(window)) return [focused];
    this.#extra = active;
    return [{ type: 'window.opened', window }, focused];
  }
}
