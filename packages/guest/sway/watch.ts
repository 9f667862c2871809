// Watches sway and its clipboards for as long as the agent runs, over every session that there is
// meanwhile. Changes are looked at a few times a second at most.

import { createInterface } from 'node:readline';
import { setMaxListeners } from 'node:events';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { DesktopWatcher } from '../desktop/backend.ts';
import { pause } from '../desktop/waiting.ts';
import { type DesktopEvent, DesktopEvents, type Selection } from '../desktop/desktop-event.ts';
import { WindowPicture } from '../desktop/window-picture.ts';
import { swayEvents } from './ipc.ts';
import type { Programs } from './programs.ts';
import type { SwayWindows } from './windows.ts';

/** Twice what a desktop of 200 windows can say at once. */
const mostWaiting = 1_000;
/** Between two looks. */
const restMs = 20;
const reconnectMs = { first: 50, most: 1_000 } as const;

/** One line for each change. */
const watching: Record<Selection, readonly [string, ...string[]]> = {
  clipboard: ['wl-paste', '--watch', 'echo'],
  primary: ['wl-paste', '--primary', '--watch', 'echo'],
};

export class SwayWatch implements DesktopWatcher {
  readonly #programs: Programs;
  readonly #windows: SwayWindows;
  readonly #events = new DesktopEvents(mostWaiting);
  readonly #picture = new WindowPicture();
  readonly #ending = new AbortController();

  constructor(programs: Programs, windows: SwayWindows) {
    this.#programs = programs;
    this.#windows = windows;
    setMaxListeners(0, this.#ending.signal);
    void this.#again((context, seen) => this.#followWindows(context, seen));
    for (const selection of Object.keys(watching) as Selection[]) {
      void this.#again((context, seen) => this.#followSelection(context, selection, seen));
    }
  }

  next(context: Context): Promise<DesktopEvent> {
    return this.#events.next(context);
  }

  close(): void {
    this.#ending.abort();
  }

  /** Whatever ends it, the desktop is tried again. */
  async #again(follow: (context: Context, seen: () => void) => Promise<void>): Promise<void> {
    const context = { signal: this.#ending.signal };
    let wait: number = reconnectMs.first;
    while (!context.signal.aborted) {
      await follow(context, () => (wait = reconnectMs.first)).catch(() => {});
      await pause(context, wait).catch(() => {});
      wait = Math.min(2 * wait, reconnectMs.most);
    }
  }

  async #followWindows(context: Context, seen: () => void): Promise<void> {
    let changed = true;
    let wake = Promise.withResolvers<void>();
    let over = false;
    const listening = (async () => {
      // Sway's first word is that the subscription stands: what is looked at after that misses nothing.
      for await (const _ of swayEvents(context, this.#programs.session()['SWAYSOCK'] ?? '')) {
        changed = true;
        wake.resolve();
      }
    })()
      .catch(() => {})
      .finally(() => {
        over = true;
        wake.resolve();
      });
    try {
      while (!over) {
        if (!changed) await wake.promise;
        wake = Promise.withResolvers<void>();
        if (over) break;
        changed = false;
        if (!(await this.#look(context))) changed = true;
        seen();
        await pause(context, restMs);
      }
      await listening;
    } finally {
      this.#tell(this.#picture.clear());
    }
  }

  /** False when the watcher was too slow: everything is told again then. */
  async #look(context: Context): Promise<boolean> {
    const found = await this.#windows.list(context);
    const infos = new Map(found.map(({ id, info }) => [id, info]));
    const active = found.find(({ info }) => info.focused)?.id;
    const events = await this.#picture.update(
      { windows: [...infos.keys()], active },
      async (wanted) => wanted.map((id) => infos.get(id)).filter((info) => info !== undefined),
    );
    return this.#tell(events);
  }

  async #followSelection(
    { signal }: Context,
    selection: Selection,
    seen: () => void,
  ): Promise<void> {
    const child = this.#programs.start(watching[selection]);
    const end = () => child.kill('SIGKILL');
    signal.addEventListener('abort', end, { once: true });
    try {
      for await (const _ of createInterface(child.stdout)) {
        seen();
        this.#tell([{ type: 'clipboard.changed', selection }]);
      }
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  }

  #tell(events: readonly DesktopEvent[]): boolean {
    if (events.every((event) => this.#events.add(event))) return true;
    this.#picture.forget();
    return false;
  }
}
