// Calls about a guest's desktop as the control plane makes them (wire-guest sections 1, 2, 7 and 8).

import { pipeline } from 'node:stream/promises';
import { desktopAsks, screenshotAsk } from '@cubicle/contract/guest/desktop.ts';
import { decodeMessage } from '@cubicle/contract/guest/messages.ts';
import { type GuestRequest, readText, sendJson } from './api.ts';
import type { Frames } from './frames.ts';
import type { GuestLinks } from './guest/links.ts';
import type { Failed } from './guest/result.ts';

const wants = ['gesture', 'windows', 'context', 'window', 'clipboard', 'set_clipboard'] as const;
/** Those that look only are no use of the computer. */
const looks = ['windows', 'context', 'clipboard'];

export function drives(want: string): boolean {
  return !looks.includes(want);
}

export class DesktopApi {
  readonly #links: GuestLinks;
  readonly #frames: Frames;

  constructor(links: GuestLinks, frames: Frames) {
    this.#links = links;
    this.#frames = frames;
  }

  /** What of a suspended computer is left to see; false when it is not there in the form asked for. */
  async lastPicture({ query, response }: GuestRequest, instance: string): Promise<boolean> {
    const frame = query.get('plain') === '1' ? await this.#frames.read(instance) : undefined;
    if (frame === undefined) return false;
    response.writeHead(200, {
      'content-type': 'image/jpeg',
      'content-length': frame.length,
      'x-gc-frame': 'suspended',
    });
    response.end(frame);
    return true;
  }

  async screenshot(
    { context, query, response }: GuestRequest,
    instance: string,
  ): Promise<Failed | undefined> {
    const ask = decodeMessage(Buffer.from(query.get('ask') ?? ''), screenshotAsk);
    const shot = await this.#links.screenshot(context, instance, ask);
    if (!shot.ok) return shot;
    response.writeHead(200, {
      'content-type': `image/${ask.format}`,
      'content-length': shot.length,
      'x-gc-capture': shot.capture,
      'x-gc-capture-size': `${shot.width}x${shot.height}`,
    });
    await pipeline(shot.content, response);
    return undefined;
  }

  /** A failure to tell, or undefined when it was answered. */
  async ask(
    { context, request, response }: GuestRequest,
    instance: string,
    name: string,
  ): Promise<Failed | undefined> {
    const want = wants.find((each) => each === name);
    if (want === undefined) {
      sendJson(response, 404, { error: 'no such path' });
      return undefined;
    }
    const ask = decodeMessage(Buffer.from(await readText(request)), desktopAsks[want]);
    const result = await this.#links.desktop(context, instance, want, ask);
    if (!result.ok) return result;
    sendJson(response, 200, result.told);
    return undefined;
  }
}
