// The windows that the window manager knows, in the order in which they lie on each other.

import { isFurniture, type Stack, type WindowInfo } from '../../desktop/window.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { readWords } from '../protocol/properties.ts';
import { describe } from './window.ts';

/** Nobody looks at more; a program that opens more does it to do harm. */
const mostListed = 500;
/** Read to find the topmost. */
const mostKnown = 8_192;
/** Described at once: each takes a dozen requests. */
const together = 32;

export async function readStack(context: Context, connection: Connection): Promise<Stack> {
  const { root } = connection.setup;
  const { _NET_CLIENT_LIST_STACKING: stacking, _NET_ACTIVE_WINDOW: activeWindow } = await atoms(
    context,
    connection,
    ['_NET_CLIENT_LIST_STACKING', '_NET_ACTIVE_WINDOW'],
  );
  const [windows, [active = 0]] = await Promise.all([
    readWords(context, connection, root, stacking, mostKnown),
    readWords(context, connection, root, activeWindow, 1),
  ]);
  return { windows: [...new Set(windows)], active: active === 0 ? undefined : active };
}

/** Those that are gone by now are left out. */
export async function describeAll(
  context: Context,
  connection: Connection,
  windows: readonly number[],
  active: number | undefined,
): Promise<WindowInfo[]> {
  const described: WindowInfo[] = [];
  for (let at = 0; at < windows.length; at += together) {
    const some = windows.slice(at, at + together);
    const found = await Promise.all(
      some.map((window) => describe(context, connection, window, window === active)),
    );
    described.push(...found.filter((window) => window !== undefined));
  }
  return described;
}

/** The lowest first. `all`: panels and the desktop too. */
export async function listWindows(
  context: Context,
  connection: Connection,
  { all }: { readonly all: boolean },
): Promise<WindowInfo[]> {
  const { windows, active } = await readStack(context, connection);
  const topmost = windows.slice(-mostListed);
  const described = await describeAll(context, connection, topmost, active);
  return all ? described : described.filter((window) => !isFurniture(window));
}
