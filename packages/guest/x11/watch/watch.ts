// Watches the desktop for as long as the agent runs, over every display that there is meanwhile. Changes
// are looked at a few times a second at most, however fast they come, and told in a bounded queue.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms, predefined } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import type { Display } from '../protocol/display.ts';
import { extension } from '../protocol/extensions.ts';
import { eventMasks, watchWindow } from '../protocol/own-window.ts';
import { request } from '../protocol/request.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { pause } from '../../desktop/waiting.ts';
import { eventTypes, propertyChange, typeOf } from '../selection/events.ts';
import { describeAll, readStack } from '../windows/window-list.ts';
import { type DesktopEvent, DesktopEvents, type Selection } from '../../desktop/desktop-event.ts';
import { WindowPicture } from '../../desktop/window-picture.ts';

/** Twice what a desktop of 200 windows can say at once. */
const mostWaiting = 1_000;
/** Between two looks. */
const restMs = 20;
const reconnectMs = { first: 50, most: 1_000 } as const;
/** XFIXES: tell of owners that are set, and of those that are gone with their window or program. */
const ownerChanges = 0b111;

/** What a look has to see to. */
interface Changes {
  windows: boolean;
  readonly selections: Set<Selection>;
}

export class Watch {
  readonly #display: Display;
  readonly #events = new DesktopEvents(mostWaiting);
  readonly #picture = new WindowPicture();
  readonly #ending = new AbortController();

  constructor(display: Display) {
    this.#display = display;
    void this.#run();
  }

  next(context: Context): Promise<DesktopEvent> {
    return this.#events.next(context);
  }

  close(): void {
    this.#ending.abort();
  }

  async #run(): Promise<void> {
    const context = { signal: this.#ending.signal };
    let wait: number = reconnectMs.first;
    while (!context.signal.aborted) {
      try {
        const connection = await this.#display.connection(context);
        await this.#follow(context, connection, () => {
          wait = reconnectMs.first;
        });
      } catch {
        // Whatever it was, the display is tried again.
      }
      this.#tell(this.#picture.clear());
      await pause(context, wait).catch(() => {});
      wait = Math.min(2 * wait, reconnectMs.most);
    }
  }

  /** Until the connection is lost. */
  async #follow(context: Context, connection: Connection, seen: () => void): Promise<never> {
    const changes: Changes = { windows: true, selections: new Set() };
    let wake = Promise.withResolvers<void>();
    const note = await noticing(context, connection, changes);
    const stop = connection.listen(
      (event) => {
        if (note(event)) wake.resolve();
      },
      () => wake.resolve(),
    );
    try {
      await this.#subscribe(context, connection);
      for (;;) {
        wake = Promise.withResolvers<void>();
        await this.#look(context, connection, changes);
        seen();
        await pause(context, restMs);
        const more = changes.windows || changes.selections.size > 0 || connection.lost;
        if (!more) await unlessAborted(context, wake.promise);
      }
    } finally {
      stop();
    }
  }

  async #subscribe(context: Context, connection: Connection): Promise<void> {
    const { root } = connection.setup;
    watchWindow(connection, root, eventMasks.propertyChange);
    const { opcode } = await extension(context, connection, 'XFIXES');
    const { CLIPBOARD } = await atoms(context, connection, ['CLIPBOARD']);
    await connection.ask(context, request(opcode, 0, 5, 0), (reply) => reply.readUInt32LE(8));
    for (const selection of [CLIPBOARD, predefined.PRIMARY]) {
      await connection.done(context, request(opcode, 2, root, selection, ownerChanges));
    }
  }

  async #look(context: Context, connection: Connection, changes: Changes): Promise<void> {
    const selections = [...changes.selections];
    changes.selections.clear();
    this.#tell(selections.map((selection) => ({ type: 'clipboard.changed', selection })));
    // A lost connection is found here too.
    if (!changes.windows && !connection.lost) return;
    changes.windows = false;
    const events = await this.#picture.update(
      await readStack(context, connection),
      (windows, active) => describeAll(context, connection, windows, active),
    );
    if (!this.#tell(events)) changes.windows = true;
  }

  /** False when the watcher was too slow: everything is told again then. */
  #tell(events: readonly DesktopEvent[]): boolean {
    if (events.every((event) => this.#events.add(event))) return true;
    this.#picture.forget();
    return false;
  }
}

/** Answers what looks at an event, and whether that changes anything. */
async function noticing(context: Context, connection: Connection, changes: Changes) {
  const { root } = connection.setup;
  const { firstEvent } = await extension(context, connection, 'XFIXES');
  const known = await atoms(context, connection, [
    'CLIPBOARD',
    '_NET_CLIENT_LIST',
    '_NET_CLIENT_LIST_STACKING',
    '_NET_ACTIVE_WINDOW',
  ]);
  const { CLIPBOARD, ...aboutWindows } = known;
  const watched = new Set(Object.values(aboutWindows));
  return (event: Buffer): boolean => {
    if (typeOf(event) === eventTypes.propertyNotify) {
      const { window, property } = propertyChange(event);
      if (window !== root || !watched.has(property)) return false;
      changes.windows = true;
      return true;
    }
    if (typeOf(event) !== firstEvent) return false;
    changes.selections.add(event.readUInt32LE(12) === CLIPBOARD ? 'clipboard' : 'primary');
    return true;
  };
}
