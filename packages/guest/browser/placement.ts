// Where a page lies on the screen. Browsers tell their pages the corner of the window and the size of the
// page, not where in the window the page begins: it fills all that is below the bars.

import { type PageContext, pageLimits, type PageSeen } from '@cubicle/contract/guest/page.ts';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Corner {
  readonly x: number;
  readonly y: number;
}

/** A page has whole units of style sheets, and the last one may be cut. Pixels, to be on the safe side. */
const slack = 2;

/** On the screen; nothing when the page does not fill `window`, what the browser draws of its own. */
export function cornerOf(seen: PageSeen, window: Box): Corner | undefined {
  const rest = {
    width: window.width - seen.width * seen.ratio,
    height: window.height - seen.height * seen.ratio,
  };
  const most = slack + seen.ratio;
  if (Math.abs(rest.width) > most || rest.height < -most) return undefined;
  return { x: window.x, y: window.y + Math.max(0, rest.height) };
}

/** How far the page's window is from `window`, roughly: browsers count the shadow in. */
export function apart({ window: told }: PageSeen, window: Box): number {
  return Math.abs(told.x - window.x) + Math.abs(told.y - window.y);
}

/** In pixels of the screen. */
export function placed(seen: PageSeen, corner: Corner): PageContext {
  const { url, title, truncated, ratio, zoomed } = seen;
  const scale = ratio * zoomed.scale;
  const elements = seen.elements.map(({ x, y, width, height, ...said }) => ({
    ...said,
    x: whole(corner.x + (x - zoomed.x) * scale),
    y: whole(corner.y + (y - zoomed.y) * scale),
    width: Math.max(1, whole(width * scale)),
    height: Math.max(1, whole(height * scale)),
  }));
  return { url, title, truncated, elements: elements.slice(0, pageLimits.elements) };
}

function whole(length: number): number {
  return Math.round(Math.min(Math.max(length, -32_768), 65_535));
}
