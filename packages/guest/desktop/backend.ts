// What the agent needs of a desktop, whichever it is: an X server (x11) or a Wayland compositor (sway).

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Picture, Region } from './picture/picture.ts';
import type { DesktopEvent } from './desktop-event.ts';
import type { WindowAction, WindowInfo, WindowOutcome } from './window.ts';
import type { Devices } from './devices.ts';

export interface DesktopBackend {
  readonly devices: Devices;
  readonly clipboard: {
    /** Trouble `too_large` beyond 131072 bytes. */
    read(context: Context): Promise<string>;
    /** Resolves when it can be read back. Trouble `contention` when another program was quicker. */
    write(context: Context, text: string): Promise<void>;
  };
  /** The whole screen, without the pointer. */
  grab(context: Context): Promise<Picture>;
  /** The lowest first. `all`: panels and the desktop too, as far as they are windows. */
  windows(context: Context, wanted: { readonly all: boolean }): Promise<WindowInfo[]>;
  /** What the program itself draws of its window, on the screen; nothing when it has gone. */
  drawn(context: Context, id: string): Promise<Region | undefined>;
  /** Trouble `unknown`: there is no such window. `gone`: it went away meanwhile. */
  act(context: Context, id: string, action: WindowAction): Promise<WindowOutcome>;
  /** From the beginning: the windows that there are come first. */
  watch(): DesktopWatcher;
}

export interface DesktopWatcher {
  next(context: Context): Promise<DesktopEvent>;
  close(): void;
}
