// What a watcher of the desktop is told (specification Part 6.2), and the queue in which it waits.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import type { WindowInfo } from './window.ts';

export type Selection = 'clipboard' | 'primary';

export type DesktopEvent =
  | { readonly type: 'window.opened' | 'window.focused'; readonly window: WindowInfo }
  | { readonly type: 'window.closed' | 'window.blurred'; readonly id: string }
  | { readonly type: 'clipboard.changed'; readonly selection: Selection }
  /** The watcher was too slow and has missed some; the windows that there are follow anew. */
  | { readonly type: 'missed' };

export class DesktopEvents {
  readonly #most: number;
  #waiting: DesktopEvent[] = [];
  #reader: PromiseWithResolvers<void> | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** False when there was no room: all that waited is dropped, and the watcher told so. */
  add(event: DesktopEvent): boolean {
    const room = this.#waiting.length < this.#most;
    if (!room) this.#waiting = [{ type: 'missed' }];
    else if (!this.#says(event)) this.#waiting.push(event);
    this.#reader?.resolve();
    this.#reader = undefined;
    return room;
  }

  async next(context: Context): Promise<DesktopEvent> {
    for (;;) {
      context.signal.throwIfAborted();
      const event = this.#waiting.shift();
      if (event !== undefined) return event;
      this.#reader ??= Promise.withResolvers<void>();
      await unlessAborted(context, this.#reader.promise);
    }
  }

  /** That something changed is not said twice before it is heard. */
  #says(event: DesktopEvent): boolean {
    return (
      event.type === 'clipboard.changed' &&
      this.#waiting.some(
        (before) => before.type === event.type && before.selection === event.selection,
      )
    );
  }
}
