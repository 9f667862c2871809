// The window manager, as far as one can ask it: it says what frame a window would have, and takes what it
// is told in order, so its answer tells that it has done what it was told before.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { createWindow, destroyWindow } from '../protocol/own-window.ts';
import { readWords, words } from '../protocol/properties.ts';
import { quad, request } from '../protocol/request.ts';
import { becomes } from '../../desktop/waiting.ts';

/** On a busy machine it takes a while. One that does not say that it knows the question may wait in vain. */
const answerMs = { known: 5_000, unknown: 400 };
/** What a window manager says it knows: some sixty. */
const mostSupported = 512;
const clientMessage = 33;
/** SubstructureRedirect and SubstructureNotify: for the window manager. */
const forManager = 0x180000;

/** A message about a window, sent to the root window for its manager. */
export function tellManager(
  connection: Connection,
  window: number,
  message: number,
  data: readonly number[],
): void {
  const five = Array.from({ length: 5 }, (_, i) => data[i] ?? 0);
  const event = words(quad(clientMessage, 32), window, message, ...five);
  connection.send(request(25, 0, connection.setup.root, forManager, event));
}

export async function managerSettled(context: Context, connection: Connection): Promise<void> {
  const {
    _NET_REQUEST_FRAME_EXTENTS: question,
    _NET_FRAME_EXTENTS: answer,
    _NET_SUPPORTED: list,
  } = await atoms(context, connection, [
    '_NET_REQUEST_FRAME_EXTENTS',
    '_NET_FRAME_EXTENTS',
    '_NET_SUPPORTED',
  ]);
  const { root } = connection.setup;
  const supported = await readWords(context, connection, root, list, mostSupported);
  const patienceMs = supported.includes(question) ? answerMs.known : answerMs.unknown;
  const window = createWindow(connection, 0);
  try {
    tellManager(connection, window, question, []);
    await becomes(context, patienceMs, async () => {
      const extents = await readWords(context, connection, window, answer, 4);
      return extents.length === 4;
    });
  } finally {
    destroyWindow(connection, window);
  }
}
