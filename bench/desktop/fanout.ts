// Events to eight readers, by the host's own sockets, against handing the same bytes to eight bare `ws`
// connections: frames a second, in alternating rounds.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Events } from '../../packages/host/events/events.ts';
import { eventsKind } from '../../packages/host/sockets/events.ts';
import type { SocketKind } from '../../packages/host/sockets/kind.ts';
import { Sockets } from '../../packages/host/sockets/sockets.ts';
import { median } from '../figures.ts';
import { computer, listen, oneComputer } from './computer.ts';

const readers = 8;
const frames = 4_000;
const rounds = 15;
/** A socket with so much unsent has enough. */
const enough = 256 * 1024;

export async function fanout(): Promise<Record<string, number>> {
  const child = fork(fileURLToPath(new URL('./readers.ts', import.meta.url)));
  try {
    // The first of each warms up.
    await bare(child);
    await ours(child);
    const [ratios, rates]: [number[], number[]] = [[], []];
    for (let n = 0; n < rounds; n += 1) {
      const rate = await ours(child);
      const ratio = rate / (await bare(child));
      console.log(`events to ${readers}: ${rate.toFixed(0)} frames/s, ratio ${ratio.toFixed(2)}`);
      ratios.push(ratio);
      rates.push(rate);
    }
    return { fanout_ratio: median(ratios), fanout_frames_per_second: median(rates) };
  } finally {
    child.kill();
  }
}

async function ours(child: ChildProcess): Promise<number> {
  const events = oneComputer();
  const open: WebSocket[] = [];
  const sockets = new Sockets({
    kinds: { events: noting(eventsKind(events), open) },
    instanceOf: () => computer,
    guestState: async () => undefined,
    log: console.error,
  });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    const query = new URLSearchParams();
    void sockets.upgrade({ computer, kind: 'events', query, request, socket, head });
  });
  const rate = await measure(child, server, open, (n) => events.idle(computer, n));
  events.stop();
  await sockets.stop();
  return rate;
}

async function bare(child: ChildProcess): Promise<number> {
  const server = createServer();
  const open: WebSocket[] = [];
  const accepting = new WebSocketServer({ server, perMessageDeflate: false });
  const frame = sample(oneComputer());
  accepting.on('connection', (socket) => {
    open.push(socket);
    socket.send(frame);
  });
  return measure(child, server, open, () => {
    for (const socket of open) socket.send(frame);
  });
}

/** Frames a second to all readers together. What greets them is a frame, too. */
async function measure(
  child: ChildProcess,
  server: Server,
  open: readonly WebSocket[],
  emit: (n: number) => void,
): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const joined = once(child, 'message');
  child.send({ url: `ws://127.0.0.1:${port}`, readers, frames });
  await joined;
  const done = once(child, 'message');
  const began = performance.now();
  for (let n = 1; n < frames; n += 1) {
    emit(n);
    if (open.some((socket) => socket.bufferedAmount > enough)) await emptied(open);
  }
  await done;
  const seconds = (performance.now() - began) / 1_000;
  server.close();
  return (readers * frames) / seconds;
}

function noting(kind: SocketKind, open: WebSocket[]): SocketKind {
  return {
    ...kind,
    open(call, socket) {
      open.push(socket);
      kind.open(call, socket);
    },
  };
}

/** The last and longest of the frames that will be told. */
function sample(events: Events): string {
  let frame = '';
  listen(events, (text) => (frame = text) !== '');
  events.idle(computer, frames);
  events.stop();
  return frame;
}

async function emptied(open: readonly WebSocket[]): Promise<void> {
  while (open.some((socket) => socket.bufferedAmount > 0)) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
