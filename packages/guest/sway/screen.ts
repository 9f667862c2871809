// What the screen shows, as `grim` writes it: a header in text, then red, green and blue.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { channels, type Picture } from '../desktop/picture/picture.ts';
import { DisplayError } from '../desktop/trouble.ts';
import type { Programs } from './programs.ts';

/** A computer's screen has 3840x2160 at most. */
const mostBytes = 4096 * 2304 * channels + 64;

export async function grabScreen(context: Context, programs: Programs): Promise<Picture> {
  const { code, out } = await programs.run(context, ['grim', '-t', 'ppm', '-'], mostBytes);
  if (code !== 0) throw new DisplayError('lost', 'the compositor shows no screen');
  return readPpm(out);
}

function readPpm(file: Buffer): Picture {
  const header = /^P6\s(\d{1,5})\s(\d{1,5})\s255\s/.exec(file.toString('latin1', 0, 32));
  const [width, height] = [Number(header?.[1]), Number(header?.[2])];
  const start = header?.[0].length ?? 0;
  if (header === null || file.length !== start + width * height * channels) {
    throw new DisplayError('lost', 'a picture cut short');
  }
  return { width, height, pixels: file.subarray(start) };
}
