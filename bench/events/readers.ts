// Eight readers of event streams in a process of their own: tells when each has had as many frames as were
// announced.

import { WebSocket } from 'ws';

interface Round {
  readonly url: string;
  readonly readers: number;
  readonly frames: number;
}

process.on('message', ({ url, readers, frames }: Round) => {
  let left = readers;
  for (let i = 0; i < readers; i += 1) {
    let got = 0;
    const socket = new WebSocket(url, { perMessageDeflate: false });
    socket.on('message', () => {
      got += 1;
      if (got !== frames) return;
      socket.close();
      left -= 1;
      if (left === 0) process.send?.('done');
    });
  }
});
