// The desktop of sway, a Wayland compositor that tiles. Windows through its own protocol, mouse and keyboard
// through devices of the agent's, screen and clipboard by the programs that come with Wayland.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { DesktopBackend } from '../desktop/backend.ts';
import type { Picture, Region, Size } from '../desktop/picture/picture.ts';
import { DisplayError } from '../desktop/trouble.ts';
import type { WindowAction, WindowInfo, WindowOutcome } from '../desktop/window.ts';
import { SwayClipboard } from './clipboard.ts';
import { SwayDevices } from './devices.ts';
import { askSway } from './ipc.ts';
import { Programs, type ProgramsOptions } from './programs.ts';
import { grabScreen } from './screen.ts';
import { screenOf } from './tree.ts';
import { SwayWatch } from './watch.ts';
import { SwayWindows } from './windows.ts';

export class SwayBackend implements DesktopBackend {
  readonly devices: SwayDevices;
  readonly clipboard: SwayClipboard;
  readonly #programs: Programs;
  readonly #windows: SwayWindows;

  constructor(options: ProgramsOptions) {
    this.#programs = new Programs(options);
    this.#windows = new SwayWindows(() => this.#socket());
    this.clipboard = new SwayClipboard(this.#programs);
    this.devices = new SwayDevices(this.#programs, (context) => this.#screen(context));
  }

  grab(context: Context): Promise<Picture> {
    return grabScreen(context, this.#programs);
  }

  /** The bar and the wallpaper are no windows here. */
  async windows(context: Context): Promise<WindowInfo[]> {
    return (await this.#windows.list(context)).map(({ info }) => info);
  }

  async drawn(context: Context, id: string): Promise<Region | undefined> {
    return (await this.#windows.list(context)).find(({ info }) => info.id === id)?.drawn;
  }

  act(context: Context, id: string, action: WindowAction): Promise<WindowOutcome> {
    return this.#windows.act(context, id, action);
  }

  watch(): SwayWatch {
    return new SwayWatch(this.#programs, this.#windows);
  }

  /** A program on the desktop may have changed it. */
  async #screen(context: Context): Promise<Size> {
    const size = screenOf(await askSway(context, this.#socket(), 'outputs'));
    if (size === undefined) throw new DisplayError('lost', 'sway has no screen');
    return size;
  }

  #socket(): string {
    const path = this.#programs.session()['SWAYSOCK'];
    if (path === undefined) throw new DisplayError('lost', 'the session names no sway');
    return path;
  }
}
