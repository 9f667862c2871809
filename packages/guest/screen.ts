// Joins a channel of the host's to the desktop's own VNC server. Bytes pass as they are, as fast as the
// slower of the two takes them.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import { encodeMessage } from '@cubicle/contract/guest/messages.ts';
import { Refused } from './refused.ts';

/** `path`: the VNC server's socket. */
export async function showScreen(channel: Channel, path: string): Promise<void> {
  const server = await reach(path);
  try {
    if (channel.abandoned) return;
    channel.onOver = () => server.destroy();
    channel.accept(encodeMessage({}));
    await Promise.all([toServer(channel, server), toHost(channel, server)]);
  } finally {
    server.destroy();
  }
}

async function reach(path: string): Promise<Socket> {
  const server = createConnection(path);
  try {
    await once(server, 'connect');
  } catch {
    server.destroy();
    throw new Refused('no_session');
  }
  // What goes wrong from here on ends both loops.
  server.on('error', () => {});
  return server;
}

async function toServer(channel: Channel, server: Socket): Promise<void> {
  for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
    if (!server.write(piece.bytes)) await Promise.race([once(server, 'drain'), closed(server)]);
  }
  server.end();
}

async function toHost(channel: Channel, server: Socket): Promise<void> {
  for await (const chunk of server as AsyncIterable<Buffer>) {
    if (!(await channel.send(0, chunk))) break;
  }
  channel.end();
}

async function closed(server: Socket): Promise<void> {
  if (!server.destroyed) await once(server, 'close');
}
