// What a user does to a window. The window manager is asked, as a panel asks it, and then looked at until
// it has done it: it may refuse or do something else, so what has become of the window is told.

import type { WindowAction, WindowInfo, WindowOutcome } from '../../desktop/window.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { readWords } from '../protocol/properties.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { isNoWindow } from '../protocol/request-error.ts';
import { becomes } from '../../desktop/waiting.ts';
import { managerSettled, tellManager } from './manager.ts';
import { describe, readMargins } from './window.ts';
import { readStack } from './window-list.ts';

/** A window manager does what it does in some milliseconds; a program may ask before it closes. */
const effectMs = 1_000;
const closeMs = 5_000;
/** For what the display has yet to tell a window manager that was busy. */
const belatedMs = 250;
/** So many looks, 15 ms apart, that show the same. */
const looksAtRest = 3;
const names = [
  '_NET_ACTIVE_WINDOW',
  '_NET_RESTACK_WINDOW',
  '_NET_CLOSE_WINDOW',
  '_NET_MOVERESIZE_WINDOW',
  '_NET_WM_STATE',
  '_NET_WM_STATE_HIDDEN',
  '_NET_WM_STATE_MAXIMIZED_VERT',
  '_NET_WM_STATE_MAXIMIZED_HORZ',
  'WM_CHANGE_STATE',
] as const;
type Known = Record<(typeof names)[number], number>;

/** As a panel: on behalf of the user. */
const fromUser = 2;
const iconic = 3;
const northWest = 1;
const stateChange = { remove: 0, add: 1 } as const;
/** There are a dozen kinds. */
const mostStates = 32;
/** Which of x, y, width and height are told, beside the gravity. */
const told = { place: 0b0011 << 8, size: 0b1100 << 8 } as const;

/** Trouble `unknown`: there is no such window. `gone`: it went away meanwhile. */
export async function actOnWindow(
  context: Context,
  connection: Connection,
  id: string,
  asked: WindowAction,
): Promise<WindowOutcome> {
  const window = windowOf(id);
  const { windows } = await readStack(context, connection);
  if (!windows.includes(window)) throw new DisplayError('unknown', `no window ${id}`);
  const known = await atoms(context, connection, names);
  try {
    const acting = new Acting(context, connection, window, known);
    if (asked.action === 'close') return await acting.close();
    await acting.perform(asked);
    const described = await acting.atRest();
    if (described === undefined) throw new DisplayError('gone', `window ${id} is gone`);
    return { gone: false, window: described };
  } catch (error) {
    throw isNoWindow(error) ? new DisplayError('gone', `window ${id} is gone`) : error;
  }
}

function windowOf(id: string): number {
  if (!/^0x[0-9a-f]{1,8}$/i.test(id)) throw new DisplayError('unknown', 'not the id of a window');
  return Number.parseInt(id, 16);
}

class Acting {
  readonly #context: Context;
  readonly #connection: Connection;
  readonly #window: number;
  readonly #known: Known;

  constructor(context: Context, connection: Connection, window: number, known: Known) {
    this.#context = context;
    this.#connection = connection;
    this.#window = window;
    this.#known = known;
  }

  async close(): Promise<WindowOutcome> {
    this.#tell('_NET_CLOSE_WINDOW', 0, fromUser);
    if (!(await this.#comes(closeMs, async () => !(await this.#stack()).includes(this.#window)))) {
      throw new DisplayError('unconfirmed', 'the window has not closed');
    }
    return { gone: true, window: null };
  }

  /** Resolves when it is so, or when the window manager has had its time. */
  async perform(asked: Exclude<WindowAction, { action: 'close' }>): Promise<void> {
    if (asked.action === 'move') await this.#move(asked.x, asked.y);
    else if (asked.action === 'resize') await this.#resize(asked.width, asked.height);
    else await this[asked.action]();
    // What comes of it besides, such as another active window, is there too then.
    await managerSettled(this.#context, this.#connection);
  }

  /** A window that is minimised or comes back may fly there. Nothing when it is gone. */
  async atRest(): Promise<WindowInfo | undefined> {
    let window: WindowInfo | undefined;
    let before = '';
    let still = 0;
    await this.#comes(effectMs, async () => {
      const { active } = await readStack(this.#context, this.#connection);
      window = await describe(
        this.#context,
        this.#connection,
        this.#window,
        this.#window === active,
      );
      const now = JSON.stringify(window);
      still = now === before ? still + 1 : 0;
      before = now;
      return window === undefined || still === looksAtRest;
    });
    return window;
  }

  async focus(): Promise<void> {
    this.#tell('_NET_ACTIVE_WINDOW', fromUser, 0, 0);
    await this.#effect(async () => {
      const { active } = await readStack(this.#context, this.#connection);
      return active === this.#window;
    });
  }

  async raise(): Promise<void> {
    const above = 0;
    this.#tell('_NET_RESTACK_WINDOW', fromUser, 0, above);
  }

  async minimize(): Promise<void> {
    const { _NET_WM_STATE_HIDDEN: hidden } = this.#known;
    this.#tell('WM_CHANGE_STATE', iconic);
    await this.#effect(async () => (await this.#states()).includes(hidden));
  }

  async maximize(): Promise<void> {
    await this.#maximized(true);
  }

  async unmaximize(): Promise<void> {
    await this.#maximized(false);
  }

  async #maximized(wanted: boolean): Promise<void> {
    const { _NET_WM_STATE_MAXIMIZED_VERT: down, _NET_WM_STATE_MAXIMIZED_HORZ: across } =
      this.#known;
    this.#tell(
      '_NET_WM_STATE',
      wanted ? stateChange.add : stateChange.remove,
      down,
      across,
      fromUser,
    );
    await this.#effect(async () => {
      const now = await this.#states();
      return [down, across].every((state) => now.includes(state) === wanted);
    });
  }

  /** To a place of the window as it is seen. */
  async #move(x: number, y: number): Promise<void> {
    const { left, top } = await readMargins(this.#context, this.#connection, this.#window);
    // Gravity north-west places the frame, and the shadow of a window without one.
    const shadow = { x: Math.min(0, left), y: Math.min(0, top) };
    const flags = northWest | told.place | (fromUser << 12);
    this.#tell('_NET_MOVERESIZE_WINDOW', flags, x + shadow.x, y + shadow.y, 0, 0);
  }

  async #resize(width: number, height: number): Promise<void> {
    const margins = await readMargins(this.#context, this.#connection, this.#window);
    const inner = {
      width: Math.max(1, width - margins.left - margins.right),
      height: Math.max(1, height - margins.top - margins.bottom),
    };
    const flags = northWest | told.size | (fromUser << 12);
    this.#tell('_NET_MOVERESIZE_WINDOW', flags, 0, 0, inner.width, inner.height);
  }

  /** Time begins again when a window manager that was busy has heard what it was told. */
  async #effect(look: () => Promise<boolean>): Promise<void> {
    if (await this.#comes(effectMs, look)) return;
    await managerSettled(this.#context, this.#connection);
    await this.#comes(belatedMs, look);
  }

  #comes(ms: number, look: () => Promise<boolean>): Promise<boolean> {
    return becomes(this.#context, ms, look);
  }

  async #stack(): Promise<readonly number[]> {
    return (await readStack(this.#context, this.#connection)).windows;
  }

  #states(): Promise<number[]> {
    const { _NET_WM_STATE: states } = this.#known;
    return readWords(this.#context, this.#connection, this.#window, states, mostStates);
  }

  #tell(name: (typeof names)[number], ...data: readonly number[]): void {
    tellManager(this.#connection, this.#window, this.#known[name], data);
  }
}
