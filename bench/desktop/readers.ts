// Eight readers of events in a process of their own: tells when all are there, and when each has had as many
// frames as were announced.

import { WebSocket } from 'ws';
import { accountHeader, controlHeader } from '../../packages/contract/host/api.ts';

interface Round {
  readonly url: string;
  readonly readers: number;
  readonly frames: number;
}

process.on('message', ({ url, readers, frames }: Round) => {
  let [joining, reading] = [readers, readers];
  const headers = { [controlHeader]: '1', [accountHeader]: 'acc' };
  for (let i = 0; i < readers; i += 1) {
    let got = 0;
    const socket = new WebSocket(url, { perMessageDeflate: false, headers });
    socket.on('message', () => {
      got += 1;
      if (got === 1) {
        joining -= 1;
        if (joining === 0) process.send?.('joined');
      }
      if (got !== frames) return;
      socket.close();
      reading -= 1;
      if (reading === 0) process.send?.('done');
    });
  }
});
