// What the screen shows, read from the root window in bands, so that no reply is longer than a band.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from '../protocol/connection.ts';
import { pair, request } from '../protocol/request.ts';
import type { PixelFormat } from '../protocol/setup.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import {
  channels,
  lies,
  type Picture,
  type Region,
  type Size,
} from '../../desktop/picture/picture.ts';
import { pixelReader } from './pixels.ts';

const bandBytes = 256 * 1024;
/** Bands asked for ahead: the server draws one while the agent reads the other. */
const ahead = 2;
/** A computer's screen has 3840x2160 at most. */
const mostPixels = 4096 * 2304;
const zPixmap = 2;
const allPlanes = 0xffffffff;

/** The size of the screen as it is now: a program on the desktop may have changed it. */
export function screenSize(context: Context, connection: Connection): Promise<Size> {
  const getGeometry = request(14, 0, connection.setup.root);
  return connection.ask(context, getGeometry, (reply) => ({
    width: reply.readUInt16LE(16),
    height: reply.readUInt16LE(18),
  }));
}

/** Where the pointer is. */
export function pointerPosition(
  context: Context,
  connection: Connection,
): Promise<{ readonly x: number; readonly y: number }> {
  const queryPointer = request(38, 0, connection.setup.root);
  return connection.ask(context, queryPointer, (reply) => ({
    x: reply.readInt16LE(16),
    y: reply.readInt16LE(18),
  }));
}

/** The whole screen, or a region that lies inside. */
export async function grab(
  context: Context,
  connection: Connection,
  region?: Region,
): Promise<Picture> {
  const screen = await screenSize(context, connection);
  const { x, y, width, height } = region ?? { x: 0, y: 0, ...screen };
  if (!lies({ x, y, width, height }, screen)) {
    throw new DisplayError('invalid', `the screen is ${screen.width}x${screen.height}`);
  }
  if (width * height > mostPixels) throw new DisplayError('too_large', 'the screen is too large');
  const { root, format } = connection.setup;
  const read = pixelReader(format);
  const rowBytes = bytesOfRow(format, width);
  const rows = Math.max(1, Math.floor(bandBytes / rowBytes));
  const pixels = Buffer.allocUnsafeSlow(width * height * channels);

  const readBand = (first: number) => {
    const count = Math.min(rows, height - first);
    const getImage = request(73, zPixmap, root, pair(x, y + first), pair(width, count), allPlanes);
    return connection.ask(
      context,
      getImage,
      (reply) => {
        if (reply.length < 32 + rowBytes * count) throw new RangeError('an image cut short');
        for (let row = 0; row < count; row += 1) {
          read(reply, 32 + row * rowBytes, pixels, (first + row) * width * channels, width);
        }
      },
      32 + rowBytes * count,
    );
  };
  const asked: Promise<void>[] = [];
  try {
    for (let first = 0; first < height; first += rows) {
      asked.push(readBand(first));
      if (asked.length > ahead) await asked.shift();
    }
  } finally {
    // After a failure nobody else hears of the others.
    await Promise.all(asked);
  }
  return { width, height, pixels };
}

function bytesOfRow({ bitsPerPixel, rowPad }: PixelFormat, width: number): number {
  return (Math.ceil((width * bitsPerPixel) / rowPad) * rowPad) / 8;
}
