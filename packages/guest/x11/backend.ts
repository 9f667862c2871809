// The desktop of an X server with a window manager.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { DesktopBackend } from '../desktop/backend.ts';
import { X11Devices } from './input/devices.ts';
import { grab } from './picture/grab.ts';
import type { Picture, Region } from '../desktop/picture/picture.ts';
import type { Display } from './protocol/display.ts';
import { isNoWindow } from './protocol/request-error.ts';
import { Clipboard } from './selection/clipboard.ts';
import { Watch } from './watch/watch.ts';
import { actOnWindow } from './windows/window-actions.ts';
import type { WindowAction, WindowInfo, WindowOutcome } from '../desktop/window.ts';
import { listWindows } from './windows/window-list.ts';
import { readDrawn } from './windows/window.ts';

export class X11Backend implements DesktopBackend {
  readonly devices: X11Devices;
  readonly clipboard: Clipboard;
  readonly #display: Display;

  constructor(display: Display) {
    this.#display = display;
    this.devices = new X11Devices(display);
    this.clipboard = new Clipboard(display);
  }

  async grab(context: Context): Promise<Picture> {
    return grab(context, await this.#display.connection(context));
  }

  async windows(context: Context, wanted: { readonly all: boolean }): Promise<WindowInfo[]> {
    return listWindows(context, await this.#display.connection(context), wanted);
  }

  async drawn(context: Context, id: string): Promise<Region | undefined> {
    try {
      return await readDrawn(context, await this.#display.connection(context), Number(id));
    } catch (error) {
      if (isNoWindow(error)) return undefined;
      throw error;
    }
  }

  async act(context: Context, id: string, action: WindowAction): Promise<WindowOutcome> {
    return actOnWindow(context, await this.#display.connection(context), id, action);
  }

  watch(): Watch {
    return new Watch(this.#display);
  }
}
