// Event streams: frames a second to eight readers against handing the same bytes to eight bare `ws`
// connections, in alternating rounds of one run; and what a million events leave in memory.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type WebSocket, WebSocketServer } from 'ws';
import { computer, oneComputer } from './computer.ts';
import { soak } from './soak.ts';

const readers = 8;
const frames = 40_000;
const rounds = 7;
/** A socket with so much unsent has enough. */
const enough = 256 * 1024;

export async function run(): Promise<void> {
  const soaked = await soak();
  console.log(JSON.stringify(soaked));
  const child = fork(fileURLToPath(new URL('./readers.ts', import.meta.url)));
  try {
    await round(child, bare);
    await round(child, streams);
    const results: { ratio: number; ours: number; bare: number }[] = [];
    for (let n = 0; n < rounds; n += 1) {
      const ofBare = await round(child, bare);
      const ours = await round(child, streams);
      const ratio = ours / ofBare;
      console.log(
        `streams ${ours.toFixed(0)}/s, bare ${ofBare.toFixed(0)}/s, ratio ${ratio.toFixed(2)}`,
      );
      results.push({ ratio, ours, bare: ofBare });
    }
    const median = results.toSorted((a, b) => a.ratio - b.ratio)[Math.floor(rounds / 2)];
    console.log(
      JSON.stringify({
        bench: 'events',
        fanout_ratio: Math.round((median?.ratio ?? 0) * 100) / 100,
        frames_per_second: Math.round(median?.ours ?? 0),
        bare_frames_per_second: Math.round(median?.bare ?? 0),
        ...soaked,
      }),
    );
  } finally {
    child.kill();
  }
}

interface Connection {
  readonly socket: WebSocket;
  readonly wire: Socket;
}

type Send = (connections: readonly Connection[]) => Promise<void>;

/** Frames a second to all readers together. */
async function round(child: ChildProcess, send: Send): Promise<number> {
  const server = new WebSocketServer({ port: 0, perMessageDeflate: false });
  const connections: Connection[] = [];
  const { promise: joined, resolve } = Promise.withResolvers<void>();
  server.on('connection', (socket, { socket: wire }) => {
    if (connections.push({ socket, wire }) === readers) resolve();
  });
  const { port } = server.address() as AddressInfo;
  const done = once(child, 'message');
  child.send({ url: `ws://127.0.0.1:${port}`, readers, frames });
  await joined;
  const began = performance.now();
  await send(connections);
  await done;
  const seconds = (performance.now() - began) / 1_000;
  server.close();
  return (readers * frames) / seconds;
}

const bare: Send = async (connections) => {
  const sockets = connections.map(({ socket }) => socket);
  const frame = sample();
  for (let i = 0; i < frames; i += 1) {
    for (const socket of sockets) socket.send(frame);
    if (sockets.some(isFull)) await emptied(sockets);
  }
};

const streams: Send = async (connections) => {
  const sockets = connections.map(({ socket }) => socket);
  const events = oneComputer({ now: () => performance.now(), date: () => new Date() });
  for (const { socket, wire } of connections) {
    const request = { computer, account: 'acc', watches: [] };
    const subscribed = events.subscribe(request, {
      send(text) {
        socket.send(text);
        return !isFull(socket);
      },
      close: (detail) => {
        throw new Error(detail);
      },
    });
    if (!subscribed.ok) throw new Error(subscribed.refusal.message);
    wire.on('drain', () => subscribed.subscription.drained());
    socket.on('close', () => subscribed.subscription.end());
    subscribed.subscription.begin();
  }
  // The hello is a frame, too.
  for (let i = 1; i < frames; i += 1) {
    events.idle(computer, i);
    if (sockets.some(isFull)) await emptied(sockets);
  }
  // Whoever was full reads on from the history.
  await emptied(sockets);
};

function sample(): string {
  const events = oneComputer({ now: () => performance.now(), date: () => new Date() });
  let frame = '';
  const request = { computer, account: 'acc', watches: [] };
  const subscribed = events.subscribe(request, {
    send: (text) => (frame = text) !== '',
    close() {},
  });
  if (subscribed.ok) subscribed.subscription.begin();
  events.idle(computer, frames);
  events.stop();
  return frame;
}

function isFull(socket: WebSocket): boolean {
  return socket.bufferedAmount > enough;
}

async function emptied(sockets: readonly WebSocket[]): Promise<void> {
  while (sockets.some((socket) => socket.bufferedAmount > 0)) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
