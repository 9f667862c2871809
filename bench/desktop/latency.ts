// How long it takes from what happens in a computer to the event at a subscriber of its socket.

import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { median, percentile, timed } from '../figures.ts';
import type { BenchGuest } from './guest.ts';

const clicks = 60;
const copies = 400;

interface Frame {
  readonly type: string;
  readonly data?: { readonly title?: string };
}

export async function latency(guest: BenchGuest): Promise<Record<string, number>> {
  const socket = new WebSocket(await guest.address('events_url'));
  await once(socket, 'message');
  const figures = { ...(await clickToEvent(guest, socket)), ...(await copyToEvent(guest, socket)) };
  socket.close();
  await once(socket, 'close');
  return figures;
}

/** From the call for a click until the window that it opens is told of. */
async function clickToEvent(guest: BenchGuest, socket: WebSocket) {
  const { service, id } = guest;
  await guest.act('button');
  const at = await buttonOf(guest);
  const times: number[] = [];
  for (let n = 0; n < clicks; n += 1) {
    const closed = heard(socket, ({ type }) => type === 'window.closed');
    const opened = heard(socket, ({ data }) => data?.title === 'bench-opened');
    const click = { action: 'left_click', ...at };
    const [ms] = await timed(async () => {
      void service.good('POST', `/computers/${id}/input`, click);
      await opened;
    });
    times.push(ms);
    await closed;
  }
  console.log(`click to event ${median(times).toFixed(1)} ms`);
  return { click_to_event_ms: median(times), click_to_event_p95_ms: percentile(times, 0.95) };
}

/** From a change of the clipboard's owner, timed in the guest. */
async function copyToEvent(guest: BenchGuest, socket: WebSocket) {
  const arrived: number[] = [];
  const note = (data: Buffer) => {
    if (frameOf(data).type === 'clipboard.changed') arrived.push(Number(process.hrtime.bigint()));
  };
  socket.on('message', note);
  const made = await guest.numbers('copies', `${copies}`);
  socket.off('message', note);
  // One more when the last owner leaves.
  if (arrived.length < copies) throw new Error(`${arrived.length} of ${copies} events came`);
  const times = made.map((at, i) => ((arrived[i] as number) - at) / 1e6);
  console.log(`event ${median(times).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`);
  return { event_latency_p50_ms: median(times), event_latency_p99_ms: percentile(times, 0.99) };
}

/** The middle of the window that is to be clicked. */
async function buttonOf(guest: BenchGuest): Promise<{ x: number; y: number }> {
  for (;;) {
    const button = (await guest.windows()).find(({ title }) => title === 'bench-button');
    if (button !== undefined) return { x: button.x + 100, y: button.y + 50 };
    await pause(100);
  }
}

function heard(socket: WebSocket, holds: (frame: Frame) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const hear = (data: Buffer) => {
      if (!holds(frameOf(data))) return;
      socket.off('message', hear);
      resolve();
    };
    socket.on('message', hear);
  });
}

function frameOf(data: Buffer): Frame {
  return JSON.parse(data.toString()) as Frame;
}
