// Screenshots. The newest capture is held, so that a part of what somebody has seen can be looked at closer
// although the screen has changed meanwhile (wire-guest section 1).

import type { ScreenshotAsk } from '@cubicle/contract/guest/desktop.ts';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { randomName } from '../random-name.ts';
import { Refused } from '../refused.ts';
import { encodeJpeg } from './picture/jpeg.ts';
import { crop, lies, type Picture, scaledSize, shrunkSize } from './picture/picture.ts';
import { encodePng } from './picture/png.ts';
import { resize } from './picture/resize.ts';
import { Turns } from './waiting.ts';

interface Capture {
  readonly name: string;
  readonly takenAt: number;
  readonly picture: Picture;
}

export interface Shot {
  readonly capture: string;
  /** Of the whole capture. */
  readonly width: number;
  readonly height: number;
  readonly bytes: Buffer;
}

const million = 1_000_000;

export class Screens {
  readonly #grab: (context: Context) => Promise<Picture>;
  readonly #turns = new Turns();
  #held: Capture | undefined;

  constructor(grab: (context: Context) => Promise<Picture>) {
    this.#grab = grab;
  }

  async take(context: Context, ask: ScreenshotAsk): Promise<Shot> {
    const askedAt = performance.now();
    // One capture at a time: whoever waited for it may be served by it.
    const { name, picture } = await this.#turns.take(context, () =>
      this.#capture(context, ask, askedAt),
    );
    const { width, height } = picture;
    const bytes = await encode(context, await cut(context, picture, ask), ask);
    return { capture: name, width, height, bytes };
  }

  async #capture(context: Context, ask: ScreenshotAsk, askedAt: number): Promise<Capture> {
    const held = this.#held;
    if (ask.capture !== null) {
      if (held?.name !== ask.capture) throw new Refused('stale');
      return held;
    }
    if (held !== undefined && held.takenAt >= askedAt - ask.most_age_ms) return held;
    const takenAt = performance.now();
    const picture = await this.#grab(context);
    this.#held = { name: randomName(8), takenAt, picture };
    return this.#held;
  }
}

/** Crop, then shrink. */
async function cut(context: Context, whole: Picture, ask: ScreenshotAsk): Promise<Picture> {
  const { region, width, scale } = ask;
  if (region !== null && !lies(region, whole)) throw new Refused('invalid');
  const part = region === null ? whole : crop(whole, region);
  if (width !== null) return resize(context, part, shrunkSize(part, width));
  if (scale !== null) return resize(context, part, scaledSize(part, scale / million));
  return part;
}

function encode(context: Context, picture: Picture, ask: ScreenshotAsk): Promise<Buffer> {
  return ask.format === 'png'
    ? encodePng(context, picture)
    : encodeJpeg(context, picture, ask.quality);
}
