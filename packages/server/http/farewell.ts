// How a connection ends. Closing a socket with unread bytes resets it, and the reset overtakes the answers
// that are still on their way. So our side is ended first, and what the other side goes on to send is read
// and dropped, a bounded amount for a bounded time.

import type { Socket } from 'node:net';

/** Reading more would only invite more. */
const droppedBytes = 256 * 1024;
/** How long the other side may take to close too, once it was handed everything. */
const lingerMs = 5_000;

/** Node ends a connection after its last answer by this method, and so do we. */
export function partKindly(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}

function linger(socket: Socket): void {
  if (socket.destroyed) return;
  let left = droppedBytes;
  // Nothing that comes now is a request.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) socket.pause();
  });
  socket.resume();
  const cut = () => socket.destroy();
  // Who does not even take what is there for it is not waited for either.
  socket.setTimeout(lingerMs, cut);
  socket.end(() => {
    const timer = setTimeout(cut, lingerMs);
    socket.once('close', () => clearTimeout(timer));
  });
}
