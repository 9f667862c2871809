// Sway's tree of containers, read as windows. Sway is the desktop's, so nothing in it is taken for granted.

import type { Region, Size } from '../desktop/picture/picture.ts';
import { shortened } from '../desktop/window-text.ts';
import { idOf, type WindowInfo } from '../desktop/window.ts';

/** A window as sway has it. */
export interface SwayWindow {
  readonly id: number;
  readonly info: WindowInfo;
  readonly floating: boolean;
  /** What the program draws, on the screen: without sway's borders. */
  readonly drawn: Region;
  /** Put away, which is how a compositor that tiles minimises. */
  readonly hidden: boolean;
  readonly marks: readonly string[];
}

const longest = { title: 512, class: 128 } as const;
const mostWindows = 500;
const deepest = 64;
const scratchpad = '__i3_scratch';

type Json = Readonly<Record<string, unknown>>;

/** The lowest first: tiled ones, then those that float above them. */
export function windowsOf(tree: unknown): SwayWindow[] {
  const found: SwayWindow[] = [];
  walk(object(tree), 0, false, found);
  return found.slice(-mostWindows);
}

/** What its outputs cover together. */
export function screenOf(outputs: unknown): Size | undefined {
  const rects = list(outputs)
    .map(object)
    .filter((output) => output['active'] === true)
    .map((output) => object(output['rect']));
  const width = Math.max(0, ...rects.map((r) => whole(r['x'], 65_535) + whole(r['width'], 65_535)));
  const height = Math.max(
    0,
    ...rects.map((r) => whole(r['y'], 65_535) + whole(r['height'], 65_535)),
  );
  return width > 0 && height > 0 ? { width, height } : undefined;
}

function walk(node: Json, depth: number, put: boolean, found: SwayWindow[]): void {
  if (depth > deepest) return;
  const hidden = put || (node['type'] === 'workspace' && node['name'] === scratchpad);
  const [tiled, floating] = [list(node['nodes']), list(node['floating_nodes'])];
  for (const child of [...tiled, ...floating]) walk(object(child), depth + 1, hidden, found);
  const isContainer = node['type'] === 'con' || node['type'] === 'floating_con';
  if (isContainer && tiled.length === 0 && typeof node['pid'] === 'number') {
    const window = windowOf(node, hidden);
    if (window !== undefined) found.push(window);
  }
}

function windowOf(node: Json, hidden: boolean): SwayWindow | undefined {
  const id = node['id'];
  if (typeof id !== 'number' || !Number.isInteger(id) || id < 1 || id > 0xffffffff)
    return undefined;
  // A program that speaks X11 has a class instead.
  const name = node['app_id'] ?? object(node['window_properties'])['class'];
  const pid = whole(node['pid'], 0x7fffffff);
  const rect = object(node['rect']);
  const bar = node['type'] === 'floating_con' ? whole(object(node['deco_rect'])['height'], 200) : 0;
  return {
    id,
    floating: node['type'] === 'floating_con',
    hidden,
    drawn: drawnOf(node),
    marks: list(node['marks']).filter((mark) => typeof mark === 'string'),
    info: {
      id: idOf(id),
      title: shortened(text(node['name']), longest.title),
      class: shortened(text(name), longest.class),
      type: 'normal',
      ...(pid > 0 && { pid }),
      x: whole(rect['x'], 65_536),
      // A title bar lies above what sway calls the window.
      y: whole(rect['y'], 65_536) - bar,
      width: Math.max(1, whole(rect['width'], 65_536)),
      height: Math.max(1, whole(rect['height'], 65_536) + bar),
      focused: node['focused'] === true,
      visible: node['visible'] === true,
    },
  };
}

/** Sway tells it in relation to the window. */
function drawnOf(node: Json): Region {
  const [outer, inner] = [object(node['rect']), object(node['window_rect'])];
  return {
    x: whole(outer['x'], 65_536) + whole(inner['x'], 65_536),
    y: whole(outer['y'], 65_536) + whole(inner['y'], 65_536),
    width: Math.max(1, whole(inner['width'], 65_536)),
    height: Math.max(1, whole(inner['height'], 65_536)),
  };
}

const object = (value: unknown): Json =>
  typeof value === 'object' && value !== null ? (value as Json) : {};
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function whole(value: unknown, most: number): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 0;
  return Math.max(-most, Math.min(most, Math.round(value)));
}
