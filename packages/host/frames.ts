// The last picture of a suspended computer: taken before it freezes, kept until it is suspended again.

import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ScreenshotAsk } from '@cubicle/contract/guest/desktop.ts';
import type { GuestLinks } from './guest/links.ts';

const small: ScreenshotAsk = {
  capture: null,
  most_age_ms: 1_500,
  region: null,
  width: 640,
  scale: null,
  format: 'jpeg',
  quality: 72,
};
/** A suspend does not wait longer for a guest that draws slowly: 0.1 s is usual, seconds on a busy machine. */
const longestMs = 5_000;
/** A JPEG of 640 pixels' width has some tens of kilobytes; a guest may send anything. */
const mostBytes = 1024 * 1024;

export class Frames {
  readonly #folder: string;
  readonly #links: GuestLinks;

  constructor(folder: string, links: GuestLinks) {
    this.#folder = folder;
    this.#links = links;
  }

  /** Without a desktop that answers there is none. */
  async save(instance: string): Promise<void> {
    await this.remove(instance);
    const context = { signal: AbortSignal.timeout(longestMs) };
    try {
      const shot = await this.#links.screenshot(context, instance, small);
      if (!shot.ok || shot.length > mostBytes) return;
      const bytes = Buffer.concat(await Array.fromAsync(shot.content));
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(this.#draft(instance), bytes);
      await rename(this.#draft(instance), this.#path(instance));
    } catch (error) {
      if (!context.signal.aborted) throw error;
    }
  }

  async read(instance: string): Promise<Buffer | undefined> {
    return readFile(this.#path(instance)).catch(() => undefined);
  }

  async remove(instance: string): Promise<void> {
    await rm(this.#path(instance), { force: true });
    // A daemon may have been killed over it.
    await rm(this.#draft(instance), { force: true });
  }

  #draft(instance: string): string {
    return `${this.#path(instance)}.new`;
  }

  #path(instance: string): string {
    return join(this.#folder, `${instance}.jpg`);
  }
}
