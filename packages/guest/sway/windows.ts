// Windows through the compositor: what there is, and what is done to them. Sway answers whether it did a
// command, and the tree is looked at until it shows it.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Point } from '../desktop/devices.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { becomes } from '../desktop/waiting.ts';
import type { WindowAction, WindowOutcome } from '../desktop/window.ts';
import { askSway } from './ipc.ts';
import { type SwayWindow, windowsOf } from './tree.ts';

const effectMs = 1_000;
/** A program may ask before it closes. */
const closeMs = 5_000;
/** So many looks, 15 ms apart, that show the same. */
const looksAtRest = 3;

export class SwayWindows {
  readonly #socket: () => string;

  constructor(socket: () => string) {
    this.#socket = socket;
  }

  async list(context: Context): Promise<SwayWindow[]> {
    return windowsOf(await askSway(context, this.#socket(), 'tree'));
  }

  async act(context: Context, id: string, asked: WindowAction): Promise<WindowOutcome> {
    const window = await this.#find(context, id);
    if (window === undefined) throw new DisplayError('unknown', `no window ${id}`);
    if (asked.action === 'close') {
      await this.#tell(context, window, 'kill');
      const gone = async () => (await this.#find(context, id)) === undefined;
      if (await becomes(context, closeMs, gone)) return { gone: true, window: null };
      throw new DisplayError('unconfirmed', 'the window has not closed');
    }
    await this.#perform(context, window, asked);
    const info = (await this.#atRest(context, id))?.info;
    if (info === undefined) throw new DisplayError('gone', `window ${id} is gone`);
    return { gone: false, window: info };
  }

  async #perform(
    context: Context,
    window: SwayWindow,
    asked: Exclude<WindowAction, { action: 'close' }>,
  ): Promise<void> {
    switch (asked.action) {
      case 'move':
        requireFloating(window);
        return this.#tell(context, window, placed(asked));
      case 'resize': {
        requireFloating(window);
        const { width, height } = asked;
        // Sway would keep the middle where it is.
        const sized = `resize set width ${width} px height ${height} px, ${placed(window.info)}`;
        return this.#tell(context, window, sized);
      }
      case 'minimize':
        return this.#putAway(context, window);
      case 'maximize':
        return this.#tell(context, await this.#shown(context, window), 'fullscreen enable');
      case 'unmaximize':
        return this.#tell(context, await this.#shown(context, window), 'fullscreen disable');
      default:
        // A compositor that tiles has no order of its own to raise a window in.
        return this.#tell(context, await this.#shown(context, window), 'focus');
    }
  }

  /** What comes back from the scratchpad floats; a mark remembers that it was tiled. */
  async #putAway(context: Context, window: SwayWindow): Promise<void> {
    if (window.hidden) return;
    const mark = window.floating ? '' : `mark --add ${markOf(window)}, `;
    await this.#tell(context, window, `${mark}fullscreen disable, move scratchpad`);
  }

  async #shown(context: Context, window: SwayWindow): Promise<SwayWindow> {
    if (!window.hidden) return window;
    const tiled = window.marks.includes(markOf(window));
    const back = tiled ? `, floating disable, unmark ${markOf(window)}` : '';
    await this.#tell(context, window, `scratchpad show${back}`);
    return (await this.#find(context, window.info.id)) ?? window;
  }

  async #tell(context: Context, { id }: SwayWindow, command: string): Promise<void> {
    const answers = await askSway(context, this.#socket(), 'command', `[con_id=${id}] ${command}`);
    const done = Array.isArray(answers) && answers.every((answer) => answer?.success === true);
    if (done) return;
    const there = (await this.list(context)).some((window) => window.id === id);
    if (!there) throw new DisplayError('gone', 'the window is gone');
    throw new DisplayError('invalid', 'sway does not do it');
  }

  async #find(context: Context, id: string): Promise<SwayWindow | undefined> {
    return (await this.list(context)).find(({ info }) => info.id === id);
  }

  /** Programs follow their new size in their own time. */
  async #atRest(context: Context, id: string): Promise<SwayWindow | undefined> {
    let window: SwayWindow | undefined;
    let before = '';
    let still = 0;
    await becomes(context, effectMs, async () => {
      window = await this.#find(context, id);
      const now = JSON.stringify(window);
      still = now === before ? still + 1 : 0;
      before = now;
      return window === undefined || still === looksAtRest;
    });
    return window;
  }
}

const markOf = ({ id }: SwayWindow): string => `_tiled_${id}`;

function requireFloating({ floating }: SwayWindow): void {
  if (!floating) throw new DisplayError('tiled', 'the window is tiled');
}

const placed = ({ x, y }: Point): string => `move absolute position ${x} px ${y} px`;
