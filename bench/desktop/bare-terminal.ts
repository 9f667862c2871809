// The least there is between a pty and a WebSocket: what `cat` shows is sent as it comes.

import { spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { WebSocketServer } from 'ws';

const [, , file = ''] = process.argv;
const pty = fileURLToPath(new URL('./bare-pty.py', import.meta.url));
/** With so much unsent the pty waits. */
const enough = 1024 * 1024;

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket) => {
  socket.once('message', () => {
    const { stdout } = spawn('/usr/bin/python3', [pty, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    stdout.on('data', (chunk: Buffer) => {
      socket.send(chunk, () => {
        if (socket.bufferedAmount < enough / 2) stdout.resume();
      });
      if (socket.bufferedAmount > enough) stdout.pause();
    });
  });
});
server.on('listening', () => {
  process.send?.(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
