// Tells the host what happens on the desktop: windows and clipboard. Each host that greets hears all from
// the beginning.

import type { AgentEvent, DesktopWindow } from '@cubicle/contract/guest/messages.ts';
import type { DesktopEvent } from './desktop-event.ts';
import type { DesktopBackend } from './backend.ts';
import { shortened } from './window-text.ts';
import type { WindowInfo } from './window.ts';

/** Bytes: an event has to fit its frame, however its text is escaped. */
const most = { title: 256, class: 128 } as const;

export class DesktopReporter {
  readonly #desktop: DesktopBackend;
  readonly #tell: (event: AgentEvent) => void;
  #ending = new AbortController();

  constructor(desktop: DesktopBackend, tell: (event: AgentEvent) => void) {
    this.#desktop = desktop;
    this.#tell = tell;
  }

  /** A host listens that knows nothing yet. */
  begin(): void {
    this.#ending.abort();
    this.#ending = new AbortController();
    this.#tell({ type: 'watcher', live: true });
    void this.#follow(this.#ending.signal);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const watch = this.#desktop.watch();
    try {
      for (;;) this.#tell(reported(await watch.next({ signal })));
    } catch {
      // Another host has greeted.
    } finally {
      watch.close();
    }
  }
}

/** What was missed makes all that was told before worth nothing; the watcher begins again. */
function reported(event: DesktopEvent): AgentEvent {
  switch (event.type) {
    case 'missed':
      return { type: 'watcher', live: true };
    case 'window.opened':
    case 'window.focused':
      return { type: event.type, window: windowOf(event.window) };
    case 'window.blurred':
    case 'window.closed':
      return { type: event.type, id: event.id };
    default:
      return event;
  }
}

function windowOf({
  pid = null,
  ...window
}: Omit<WindowInfo, 'pid'> & { pid?: number | null }): DesktopWindow {
  return {
    ...window,
    title: shortened(window.title, most.title),
    class: shortened(window.class, most.class),
    pid,
  };
}
