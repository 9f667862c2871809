// A window as the desktop's user sees it: with its frame, and without the shadow that some programs draw
// around themselves.

import { idOf, type WindowInfo } from '../../desktop/window.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms, predefined } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { type Property, readStart, readWords } from '../protocol/properties.ts';
import { request } from '../protocol/request.ts';
import { isNoWindow } from '../protocol/request-error.ts';
import { decodeText, shortened } from '../../desktop/window-text.ts';

/** Bytes of UTF-8. */
const longest = { title: 512, class: 128 } as const;
/** Longer than any title is shown: characters of other encodings may be shorter in UTF-8. */
const readBytes = 1_024;

const typeNames = [
  'desktop',
  'dock',
  'toolbar',
  'menu',
  'utility',
  'splash',
  'dialog',
  'dropdown_menu',
  'popup_menu',
  'tooltip',
  'notification',
  'combo',
  'dnd',
  'normal',
] as const;
const typeAtoms = typeNames.map((name) => `_NET_WM_WINDOW_TYPE_${name.toUpperCase()}` as const);

/** Nothing when it is not there any more. */
export async function describe(
  context: Context,
  connection: Connection,
  window: number,
  focused: boolean,
): Promise<WindowInfo | undefined> {
  try {
    const [title, ofClass, type, pid, box, visible] = await Promise.all([
      readTitle(context, connection, window),
      readClass(context, connection, window),
      readType(context, connection, window),
      readPid(context, connection, window),
      readBox(context, connection, window),
      isVisible(context, connection, window),
    ]);
    const said = pid === undefined ? {} : { pid };
    return { id: idOf(window), title, class: ofClass, type, ...said, ...box, focused, visible };
  } catch (error) {
    if (isNoWindow(error)) return undefined;
    throw error;
  }
}

async function readTitle(context: Context, connection: Connection, window: number) {
  const {
    _NET_WM_NAME: ownName,
    _NET_WM_VISIBLE_NAME: shownName,
    UTF8_STRING,
  } = await atoms(context, connection, ['_NET_WM_NAME', '_NET_WM_VISIBLE_NAME', 'UTF8_STRING']);
  const [modern, old, shown] = await Promise.all(
    [ownName, predefined.WM_NAME, shownName].map((name) =>
      readStart(context, connection, window, name, readBytes),
    ),
  );
  // Older programs may use an encoding that window managers can read: what they show is said last.
  const readable = (said: Property | undefined) =>
    said?.value.length !== 0 && (said?.type === UTF8_STRING || said?.type === predefined.STRING);
  const found = [modern, old, shown].find(readable) ?? old;
  if (found === undefined || found.format !== 8) return '';
  return shortened(decodeText(found.value, found.type === UTF8_STRING), longest.title);
}

/** Two names, each ended by a zero byte: what it is called here, and what kind of program it is. */
async function readClass(context: Context, connection: Connection, window: number) {
  const { value } = await readStart(context, connection, window, predefined.WM_CLASS, readBytes);
  const [name = '', ofClass = ''] = decodeText(value, true).split('\0');
  return shortened(ofClass === '' ? name : ofClass, longest.class);
}

async function readType(context: Context, connection: Connection, window: number) {
  const { _NET_WM_WINDOW_TYPE: windowType, ...known } = await atoms(context, connection, [
    '_NET_WM_WINDOW_TYPE',
    ...typeAtoms,
  ]);
  const [said, transientFor] = await Promise.all([
    readWords(context, connection, window, windowType, 8),
    readWords(context, connection, window, predefined.WM_TRANSIENT_FOR, 1),
  ]);
  for (const atom of said) {
    const at = typeAtoms.findIndex((name) => known[name] === atom);
    if (at >= 0) return typeNames[at] as string;
  }
  return transientFor.length > 0 ? 'dialog' : 'normal';
}

async function readPid(context: Context, connection: Connection, window: number) {
  const { _NET_WM_PID } = await atoms(context, connection, ['_NET_WM_PID']);
  const [pid] = await readWords(context, connection, window, _NET_WM_PID, 1);
  return pid !== undefined && pid > 0 && pid <= 0x7fffffff ? pid : undefined;
}

async function isVisible(context: Context, connection: Connection, window: number) {
  const { _NET_WM_STATE, _NET_WM_STATE_HIDDEN } = await atoms(context, connection, [
    '_NET_WM_STATE',
    '_NET_WM_STATE_HIDDEN',
  ]);
  const states = await readWords(context, connection, window, _NET_WM_STATE, 32);
  return !states.includes(_NET_WM_STATE_HIDDEN);
}

/** How far what is seen reaches beyond the program's own window on each side; a shadow counts negative. */
export interface Margins {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export async function readMargins(
  context: Context,
  connection: Connection,
  window: number,
): Promise<Margins> {
  const names = ['_NET_FRAME_EXTENTS', '_GTK_FRAME_EXTENTS'] as const;
  const known = await atoms(context, connection, names);
  const [frame, shadow] = await Promise.all(
    names.map((name) => readWords(context, connection, window, known[name], 4)),
  );
  const side = (i: number) => extent(frame?.[i]) - extent(shadow?.[i]);
  return { left: side(0), right: side(1), top: side(2), bottom: side(3) };
}

/** No frame is as wide as a screen. */
function extent(said = 0): number {
  return said > 4_096 ? 0 : said;
}

async function readBox(context: Context, connection: Connection, window: number) {
  const [own, margins] = await Promise.all([
    readOwn(context, connection, window),
    readMargins(context, connection, window),
  ]);
  return {
    x: own.x - margins.left,
    y: own.y - margins.top,
    width: Math.max(1, own.width + margins.left + margins.right),
    height: Math.max(1, own.height + margins.top + margins.bottom),
  };
}

/** What the program draws of itself that is no shadow: without the frame that the window manager adds. */
export async function readDrawn(context: Context, connection: Connection, window: number) {
  const { _GTK_FRAME_EXTENTS: shadow } = await atoms(context, connection, ['_GTK_FRAME_EXTENTS']);
  const [own, around] = await Promise.all([
    readOwn(context, connection, window),
    readWords(context, connection, window, shadow, 4),
  ]);
  const [left = 0, right = 0, top = 0, bottom = 0] = around.map(extent);
  return {
    x: own.x + left,
    y: own.y + top,
    width: Math.max(1, own.width - left - right),
    height: Math.max(1, own.height - top - bottom),
  };
}

/** The program's own window on the screen. */
async function readOwn(context: Context, connection: Connection, window: number) {
  const [size, place] = await Promise.all([
    connection.ask(context, request(14, 0, window), (reply) => ({
      width: reply.readUInt16LE(16),
      height: reply.readUInt16LE(18),
    })),
    connection.ask(context, request(40, 0, window, connection.setup.root, 0), (reply) => ({
      x: reply.readInt16LE(12),
      y: reply.readInt16LE(14),
    })),
  ]);
  return { ...size, ...place };
}
