// The page in the browser's window that has the focus (wire-guest section 2).

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { PageContext, PageSeen, PageTrouble } from '@cubicle/contract/guest/page.ts';
import { debugPort } from './debug-port.ts';
import { type OpenPage, openPages, PageSession } from './devtools.ts';
import { apart, type Box, type Corner, cornerOf, placed } from './placement.ts';
import { readPage } from './script.ts';

/** A window as the desktop has it. */
export interface BrowserWindow {
  readonly title: string;
  readonly class: string;
  readonly pid?: number;
  /** What the browser draws of it, on the screen. */
  readonly box: Box;
}

/** Pages that may be the one; those used last come first. */
const mostAsked = 8;

interface Found {
  readonly page: PageSeen;
  readonly corner: Corner;
}

export class NoPage extends Error {
  readonly trouble: PageTrouble;

  constructor(trouble: PageTrouble, options?: ErrorOptions) {
    super(`no page: ${trouble}`, options);
    this.trouble = trouble;
  }
}

/** A browser that has not answered when its caller leaves is silent. */
export async function pageIn(context: Context, window: BrowserWindow): Promise<PageContext> {
  if (!/chrom/i.test(window.class)) throw new NoPage('no_browser');
  const port = window.pid === undefined ? undefined : debugPort(window.pid);
  if (port === undefined) throw new NoPage('closed');
  const pages = await openPages(context, port).catch((cause: unknown) => {
    throw new NoPage(context.signal.aborted ? 'silent' : 'closed', { cause });
  });
  // Where titles tell which it is, pages of other windows and tabs are left alone.
  const { titled = [], others = [] } = Object.groupBy(pages, (page) =>
    isTitled(window, page) ? 'titled' : 'others',
  );
  for (const group of [titled, others]) {
    const found = await find(context, port, group.slice(0, mostAsked), window);
    if (typeof found === 'object') return placed(found.page, found.corner);
    if (found !== 'hidden') throw new NoPage(found);
  }
  throw new NoPage('hidden');
}

/** The one with the focus as soon as it answers; when none has it, the one whose window is the nearest. */
async function find(
  context: Context,
  port: number,
  pages: readonly OpenPage[],
  window: BrowserWindow,
): Promise<Found | PageTrouble> {
  const looks = pages.map((page) => look(context, port, page, window));
  const focused = looks.map(async (looking) => {
    const found = await looking;
    if (typeof found === 'object' && found.page.focused) return found;
    throw new NoPage('hidden');
  });
  const first = await Promise.any(focused).catch(() => undefined);
  if (first !== undefined) return first;
  const all = await Promise.all(looks);
  const near = all
    .filter((found) => typeof found === 'object')
    .toSorted((a, b) => apart(a.page, window.box) - apart(b.page, window.box));
  return near[0] ?? all.find((found) => found !== 'hidden') ?? 'hidden';
}

async function look(
  context: Context,
  port: number,
  { id }: OpenPage,
  { box }: BrowserWindow,
): Promise<Found | PageTrouble> {
  try {
    const page = await PageSession.with(context, port, id, readPage);
    if (page === null) return 'hidden';
    const corner = cornerOf(page, box);
    return corner === undefined ? 'misplaced' : { page, corner };
  } catch {
    // One that closed meanwhile is not to be seen any more.
    return context.signal.aborted ? 'silent' : 'hidden';
  }
}

/** The title of a window is that of its page with more behind it, and may be cut. */
function isTitled(window: BrowserWindow, { title }: OpenPage): boolean {
  const [whole, part] = [window.title, title].map((text) => text.replaceAll(/\s+/g, ' ').trim());
  if (whole === undefined || part === undefined || part === '') return false;
  return whole.startsWith(part) || part.startsWith(whole);
}
