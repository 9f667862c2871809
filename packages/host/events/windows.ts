// The windows of a desktop as its guest last told them: at most 200 and the focused one (Part 6.2). Bounded
// whatever the guest says, and only what was described is ever told to be closed.

import type { DesktopReport, DesktopWindow } from '@cubicle/contract/guest/messages.ts';
import type { EventType } from '@cubicle/contract/events.ts';
import { limits } from '@cubicle/contract/limits.ts';

export interface WindowNews {
  readonly type: Extract<EventType, `window.${string}`>;
  readonly data: object;
}

export type WindowReport = Extract<DesktopReport, { readonly type: `window.${string}` }>;

export class WindowPicture {
  readonly #windows = new Map<string, DesktopWindow>();
  #focused: string | undefined;
  /** The one beyond the 200, described as long as it has the focus. */
  #extra: string | undefined;

  /** As `GET /computers/{id}/windows` tells them. */
  list(): object[] {
    return [...this.#windows.values()].map((window) =>
      told({ ...window, focused: window.id === this.#focused }),
    );
  }

  /** What those who listen are told of it. */
  take(report: WindowReport): WindowNews[] {
    switch (report.type) {
      case 'window.opened':
        return this.#opened(report.window);
      case 'window.focused':
        return this.#focus(report.window);
      case 'window.blurred':
        this.#focused = undefined;
        return [{ type: 'window.blurred', data: { id: report.id } }, ...this.#dropExtra()];
      default:
        return this.#close(report.id);
    }
  }

  /** All of them are gone, or will be announced again. */
  clear(): WindowNews[] {
    return [...this.#windows.keys()].flatMap((id) => this.#close(id));
  }

  #opened(window: DesktopWindow): WindowNews[] {
    if (!this.#windows.has(window.id) && this.#isFull()) return [];
    this.#windows.set(window.id, window);
    if (window.focused) this.#focused = window.id;
    return [{ type: 'window.opened', data: told(window) }];
  }

  #focus(window: DesktopWindow): WindowNews[] {
    const closed = window.id === this.#extra ? [] : this.#dropExtra();
    if (!this.#windows.has(window.id) && this.#isFull()) this.#extra = window.id;
    this.#focused = window.id;
    this.#windows.set(window.id, window);
    return [{ type: 'window.focused', data: told({ ...window, focused: true }) }, ...closed];
  }

  #close(id: string): WindowNews[] {
    if (!this.#windows.delete(id)) return [];
    if (this.#focused === id) this.#focused = undefined;
    if (this.#extra === id) this.#extra = undefined;
    return [{ type: 'window.closed', data: { id } }];
  }

  #dropExtra(): WindowNews[] {
    return this.#extra === undefined ? [] : this.#close(this.#extra);
  }

  #isFull(): boolean {
    const extra = this.#extra === undefined ? 0 : 1;
    return this.#windows.size - extra >= limits.windowsDescribed;
  }
}

function told({ pid, ...window }: DesktopWindow): object {
  return pid === null ? window : { ...window, pid };
}
