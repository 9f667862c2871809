// Pictures as the agent holds them: red, green, blue, a byte each, row by row.

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface Picture extends Size {
  readonly pixels: Buffer;
}

export interface Region extends Size {
  readonly x: number;
  readonly y: number;
}

export const channels = 3;

export function lies(region: Region, { width, height }: Size): boolean {
  return region.x + region.width <= width && region.y + region.height <= height;
}

/** `region` lies inside. */
export function crop(picture: Picture, region: Region): Picture {
  const { x, y, width, height } = region;
  if (!lies(region, picture)) throw new RangeError('a region outside of the picture');
  const pixels = Buffer.allocUnsafeSlow(width * height * channels);
  for (let row = 0; row < height; row += 1) {
    const from = ((y + row) * picture.width + x) * channels;
    picture.pixels.copy(pixels, row * width * channels, from, from + width * channels);
  }
  return { width, height, pixels };
}

/** Narrower pictures show nothing. */
const leastWidth = 64;

/** `w` of a screenshot (wire-guest section 1). */
export function shrunkSize(source: Size, w: number): Size {
  const width = Math.min(Math.max(w, leastWidth), source.width);
  return { width, height: Math.max(1, Math.floor((source.height * width) / source.width)) };
}

/** `scale` of a screenshot: 0 < n <= 1. */
export function scaledSize(source: Size, scale: number): Size {
  const side = (length: number) => Math.max(1, Math.round(length * scale));
  return { width: side(source.width), height: side(source.height) };
}
