// Seeing and driving a desktop: what callers ask for, in the words of the agent.

import type { IncomingMessage } from 'node:http';
import { type InputBody, readGesture } from '@cubicle/contract/desktop/input.ts';
import { InvalidInput } from '@cubicle/contract/desktop/invalid-input.ts';
import { Refusal } from '@cubicle/contract/errors.ts';
import type {
  ContextFound,
  Gesture,
  GestureDone,
  GuestWindow,
  ScreenshotAsk,
  WindowAsk,
  WindowDone,
} from '@cubicle/contract/guest/desktop.ts';
import type { PageContext, PageTrouble } from '@cubicle/contract/guest/page.ts';
import { hostPaths } from '@cubicle/contract/host/api.ts';
import {
  type InputDone,
  isJpeg,
  type PageDom,
  type ScreenshotQuery,
  type Window,
} from '@cubicle/contract/resources/desktop.ts';
import type { ComputerRow } from '../db/computers.ts';
import { readAll } from '../hosts/host.ts';
import type { Authority } from './authority.ts';
import type { Computers } from './computers.ts';
import type { GuestCalls } from './guest-calls.ts';

export interface Caller {
  readonly authority: Authority;
  readonly id: string;
  readonly signal: AbortSignal;
}

/** A capture this old serves whoever does not ask for a fresh one. */
const mostAgeMs = 1_500;
const usualQuality = 72;
const quickMs = 30_000;
/** For windows and page together (wire-guest section 2). */
const contextMs = 3_000;
/** Above the longest that a key is held, or text typed through the composition of every character. */
const gestureMs = 95_000;

/** Why there is no `dom`. */
const pageTroubles: Record<PageTrouble, string> = {
  unfocused: 'No window has the focus.',
  no_browser: 'The focused window is not one of Chromium.',
  closed: 'This browser was started in a way that keeps its pages to itself.',
  hidden: 'The focused window shows no page.',
  silent: 'The page did not answer in time.',
  misplaced: 'The page does not fill its window, so where its elements are is not known.',
};

export class Desktop {
  readonly #computers: Computers;
  readonly #guest: GuestCalls;

  constructor(computers: Computers, guest: GuestCalls) {
    this.#computers = computers;
    this.#guest = guest;
  }

  async screenshot(
    { authority, id, signal }: Caller,
    query: ScreenshotQuery,
  ): Promise<IncomingMessage> {
    const row = await this.#computers.row(authority, id);
    const { w, fresh, format, quality, region, scale, capture } = query;
    if (region !== undefined) requireInside(region, screenOf(row));
    const jpeg = isJpeg(format, w);
    const ask: ScreenshotAsk = {
      capture: capture ?? null,
      most_age_ms: fresh === undefined ? mostAgeMs : 0,
      region: region ?? null,
      width: w ?? null,
      scale: scale === undefined ? null : Math.max(1, Math.round(scale * 1_000_000)),
      format: jpeg ? 'jpeg' : 'png',
      quality: quality ?? usualQuality,
    };
    // A suspended computer has one small JPEG to show, which `w` and `format=jpeg` do not change.
    const special = [fresh, region, scale, capture, quality].some((given) => given !== undefined);
    const plain = special || format === 'png' ? '0' : '1';
    const search = new URLSearchParams({ ask: JSON.stringify(ask), plain }).toString();
    return this.#guest.send(authority, id, {
      method: 'GET',
      path: (computer) => `${hostPaths.screenshot(computer)}?${search}`,
      timeoutMs: quickMs,
      signal,
      wakes: false,
    });
  }

  async input(caller: Caller, body: InputBody, withContext: boolean): Promise<InputDone> {
    const row = await this.#computers.row(caller.authority, caller.id);
    const gesture = gestureOf(body, row);
    const done = await this.#ask<GestureDone>(caller, 'gesture', gesture, true, gestureMs);
    const { mechanism, pointer } = done;
    return {
      ok: true,
      ...(mechanism !== null && { mechanism }),
      ...(gesture.do === 'position' && { known: pointer !== null, x: 0, y: 0, ...pointer }),
      ...(withContext && gesture.do !== 'position' && (await this.#context(caller))),
    };
  }

  async windows(caller: Caller, all: boolean): Promise<Window[]> {
    const { windows } = await this.#ask<{ windows: GuestWindow[] }>(
      caller,
      'windows',
      { all },
      false,
    );
    return windows.map(windowOf);
  }

  async actOnWindow(
    caller: Caller,
    window: string,
    action: Pick<WindowAsk, 'action'> & Partial<Record<'x' | 'y' | 'width' | 'height', number>>,
  ): Promise<{ ok: true; gone: boolean; window: Window | null }> {
    if (!/^0x[0-9a-f]{1,8}$/.test(window)) throw new Refusal('window_unknown');
    const { x, y, width, height } = action;
    const ask: WindowAsk = {
      id: window,
      action: action.action,
      place: x === undefined || y === undefined ? null : { x, y },
      size: width === undefined || height === undefined ? null : { width, height },
    };
    const done = await this.#ask<WindowDone>(caller, 'window', ask, true);
    return { ok: true, gone: done.gone, window: done.window && windowOf(done.window) };
  }

  async clipboard(caller: Caller): Promise<{ text: string }> {
    return this.#ask(caller, 'clipboard', {}, false);
  }

  async setClipboard(caller: Caller, text: string): Promise<void> {
    await this.#ask(caller, 'set_clipboard', { text }, true);
  }

  /** What is there right afterwards. That it cannot be told takes nothing back. */
  async #context(caller: Caller): Promise<Pick<InputDone, 'context' | 'context_error'>> {
    try {
      const found = await this.#ask<ContextFound>(caller, 'context', {}, false, contextMs);
      const windows = found.windows.map(windowOf);
      const focused = windows.find((window) => window.focused) ?? null;
      const context = { windows, focused };
      const { page, trouble } = found;
      if (page !== null) return { context: { ...context, dom: domOf(page) } };
      return { context, context_error: pageTroubles[trouble ?? 'hidden'] };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { context_error: error.message };
    }
  }

  async #ask<Told>(
    { authority, id, signal }: Caller,
    want: string,
    ask: object,
    wakes: boolean,
    timeoutMs = quickMs,
  ): Promise<Told> {
    const response = await this.#guest.send(authority, id, {
      method: 'POST',
      path: (computer) => hostPaths.desktop(computer, want),
      body: JSON.stringify(ask),
      timeoutMs,
      signal,
      wakes,
    });
    // The host has checked its shape.
    return JSON.parse(await readAll(response)) as Told;
  }
}

function screenOf({ resolution }: ComputerRow): { width: number; height: number } {
  const [width = 0, height = 0] = resolution.split('x').map(Number);
  return { width, height };
}

function requireInside(
  region: { x: number; y: number; width: number; height: number },
  { width, height }: { width: number; height: number },
): void {
  if (region.x + region.width <= width && region.y + region.height <= height) return;
  const problem = `\`region\` must lie inside the screen, which is ${width}x${height}.`;
  throw new Refusal('query_refused', { problem });
}

function gestureOf(body: InputBody, row: ComputerRow): Gesture {
  try {
    return readGesture(body, screenOf(row));
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    throw new Refusal('input_refused', { problem: error.message });
  }
}

function windowOf({ pid, ...window }: GuestWindow): Window {
  return { ...window, ...(pid !== null && { pid }) };
}

function domOf({ elements, ...page }: PageContext): PageDom {
  const told = elements.map(({ href, ...element }) => ({
    ...element,
    ...(href !== null && { href }),
  }));
  return { ...page, elements: told };
}
