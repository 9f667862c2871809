// Two million events of one computer, told to eight readers of whom one stops and comes back: what the second
// million adds to the memory. The first makes V8's nursery as large as it gets, some 90 MB that are no event's.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { DesktopReport } from '../../packages/contract/guest/messages.ts';
import { round } from '../figures.ts';
import { computer, listen, oneComputer } from './computer.ts';

const million = 1_000_000;

export async function memory(): Promise<Record<string, number>> {
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

  const afterMillion = async () => {
    for (let i = 1; i <= million; i += 1) {
      if (i % 4 === 0) events.idle(computer, i);
      else events.heard(computer, { type: 'report', report: report(i) });
      if (i % 3 === 0) drain();
      if (i % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    collect();
    const { heapUsed, rss } = process.memoryUsage();
    console.log(`a million events: heap ${megabytes(heapUsed)} MB, resident ${megabytes(rss)} MB`);
    return { heap: heapUsed, rss };
  };
  const warm = await afterMillion();
  const began = performance.now();
  const after = await afterMillion();
  const seconds = (performance.now() - began) / 1_000;
  over = true;
  events.stop();
  if (frames < 7 * million) throw new Error(`only ${frames} frames were told`);
  if (putDown === 0) throw new Error('nobody was put down');
  return {
    memory_growth_heap_mb: megabytes(after.heap - warm.heap),
    memory_growth_rss_mb: megabytes(after.rss - warm.rss),
    memory_rss_mb: megabytes(after.rss),
    events_per_second: million / seconds,
  };
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

function megabytes(bytes: number): number {
  return round(bytes / 2 ** 20);
}
