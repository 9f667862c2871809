// The desktop's picture: connects, shows, and comes back by itself until it is told for good to stop.

import RFB from '@novnc/novnc';
import { look } from './look.ts';
import { type Place, socketUrl } from './place.ts';
import { lastWord, type Notice, notices } from './words.ts';

export interface ScreenParts {
  readonly place: Place;
  readonly target: HTMLElement;
  /** Undefined while the picture is there. */
  readonly tell: (notice: Notice | undefined, lastPicture?: string) => void;
  readonly copied: (text: string) => void;
}

/** How soon it is tried again: at once, then patiently. */
const patienceMs = [250, 1_000, 2_000, 3_000];
/** A connection that lasted this long was a good one. */
const goodMs = 5_000;

export class Screen {
  readonly #parts: ScreenParts;
  #rfb: RFB | undefined;

  constructor(parts: ScreenParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { place, tell } = this.#parts;
    if (place.token === '') return tell(notices.incomplete);
    tell(notices.connecting);
    for (let tries = 0; ; tries += 1) {
      const problem = await look(place);
      if (problem === undefined) {
        const { code, lastedMs } = await this.#connect();
        const word = lastWord(code);
        if (word !== undefined) return tell(word);
        if (lastedMs > goodMs) tries = 0;
        // It may be opened and is not let in, time after time.
        if (lastedMs === 0 && tries > 1) tell(notices.full);
      } else {
        tell(problem);
        if (problem.kind === 'end') return;
      }
      await new Promise((again) => setTimeout(again, patienceMs[tries] ?? patienceMs.at(-1)));
    }
  }

  focus(): void {
    this.#rfb?.focus();
  }

  paste(text: string): void {
    this.#rfb?.clipboardPasteFrom(text);
  }

  #connect(): Promise<{ code: number; lastedMs: number }> {
    const { place, target, tell, copied } = this.#parts;
    return new Promise((resolve) => {
      const socket = new WebSocket(socketUrl(place, 'vnc'));
      socket.binaryType = 'arraybuffer';
      let shownAt: number | undefined;
      // Before noVNC's own, which takes the picture away.
      socket.addEventListener('close', ({ code }) => {
        if (shownAt !== undefined) {
          tell(lastWord(code) ?? notices.reconnecting, rfb.toDataURL('image/webp', 0.6));
        }
        this.#rfb = undefined;
        resolve({ code, lastedMs: shownAt === undefined ? 0 : performance.now() - shownAt });
      });
      const rfb = new RFB(target, socket, { shared: true });
      rfb.viewOnly = !place.control;
      rfb.scaleViewport = true;
      rfb.background = 'transparent';
      rfb.addEventListener('connect', () => {
        shownAt = performance.now();
        this.#rfb = rfb;
        tell(undefined);
        if (place.control) rfb.focus();
      });
      rfb.addEventListener('clipboard', (event) => {
        copied((event as CustomEvent<{ text: string }>).detail.text);
      });
    });
  }
}
