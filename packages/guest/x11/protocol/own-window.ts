// Windows of our own: never shown, there to be sent things.

import type { Connection } from './connection.ts';
import { pair, request } from './request.ts';

export const eventMasks = { propertyChange: 0x400000 } as const;

const attributes = { overrideRedirect: 0x200, eventMask: 0x800 } as const;
const copyFromParent = 0;

export function createWindow(connection: Connection, eventMask: number): number {
  const window = connection.newId();
  const { root } = connection.setup;
  const places = [pair(-1, -1), pair(1, 1), pair(0, copyFromParent), copyFromParent];
  const values = [attributes.overrideRedirect | attributes.eventMask, 1, eventMask];
  connection.send(request(1, copyFromParent, window, root, ...places, ...values));
  return window;
}

/** Of one that is not ours too: tells us what happens to it. */
export function watchWindow(connection: Connection, window: number, eventMask: number): void {
  connection.send(request(2, 0, window, attributes.eventMask, eventMask));
}

export function destroyWindow(connection: Connection, window: number): void {
  if (connection.lost) return;
  connection.send(request(4, 0, window));
  connection.freeId(window);
}
