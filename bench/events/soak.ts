// A million events of one computer, told to eight readers of whom one stops and comes back: what stays in
// memory after a tenth of them and after all.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { DesktopReport } from '../../packages/contract/guest/messages.ts';
import { type Events, type Subscription } from '../../packages/host/events/events.ts';
import { computer, oneComputer } from './computer.ts';

const total = 1_000_000;

export interface Soak {
  readonly heap_mb_after_100k: number;
  readonly heap_mb_after_1m: number;
  readonly rss_growth_mb: number;
  readonly events_per_second: number;
  readonly put_down: number;
}

export async function soak(): Promise<Soak> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Each look at the clock finds it later, so that a guest may tell all it likes.
  let now = 0;
  const events = oneComputer({ now: () => (now += 20), date: () => new Date() });
  let frames = 0;
  let putDown = 0;
  let over = false;
  for (let i = 0; i < 7; i += 1) listen(events, () => (frames += 1) > 0);
  const stubborn = () => {
    let cursor = '';
    const comeBack = () => {
      if (over) return;
      putDown += 1;
      slow = listen(events, takes, comeBack, cursor);
    };
    const takes = (text: string) => {
      cursor = (JSON.parse(text) as { cursor?: string }).cursor ?? cursor;
      return false;
    };
    let slow = listen(events, takes, comeBack);
    return () => slow.drained();
  };
  const drain = stubborn();

  const measured: { heap: number; rss: number }[] = [];
  const began = performance.now();
  for (let i = 1; i <= total; i += 1) {
    if (i % 4 === 0) events.idle(computer, i);
    else events.heard(computer, { type: 'report', report: report(i) });
    if (i % 3 === 0) drain();
    if (i % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (i !== total / 10 && i !== total) continue;
    collect();
    const { heapUsed, rss } = process.memoryUsage();
    measured.push({ heap: heapUsed / 2 ** 20, rss: rss / 2 ** 20 });
  }
  const seconds = (performance.now() - began) / 1_000;
  over = true;
  events.stop();
  const [first, last] = measured as [(typeof measured)[0], (typeof measured)[0]];
  if (frames < 7 * total) throw new Error(`only ${frames} frames of ${7 * total}`);
  return {
    heap_mb_after_100k: round(first.heap),
    heap_mb_after_1m: round(last.heap),
    rss_growth_mb: round(last.rss - first.rss),
    events_per_second: Math.round(total / seconds),
    put_down: putDown,
  };
}

function listen(
  events: Events,
  send: (text: string) => boolean,
  close: () => void = () => {},
  since?: string,
): Subscription {
  const request = { computer, account: 'acc', watches: [], since };
  const subscribed = events.subscribe(request, { send, close });
  if (!subscribed.ok) throw new Error(subscribed.refusal.message);
  subscribed.subscription.begin();
  return subscribed.subscription;
}

function report(i: number): DesktopReport {
  if (i % 5 === 0) return { type: 'clipboard.changed', selection: 'clipboard' };
  const window = {
    id: `0x${(i % 150).toString(16)}`,
    title: `Window ${i} ${'x'.repeat(i % 100)}`,
    class: 'xterm',
    type: 'normal',
    pid: i % 30_000,
    x: 0,
    y: 0,
    width: 800,
    height: 600,
    focused: false,
    visible: true,
  };
  return { type: i % 2 === 0 ? 'window.opened' : 'window.focused', window };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
