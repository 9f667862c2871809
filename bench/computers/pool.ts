// Creates that are served from the pool of booted computers.

import { setTimeout as pause } from 'node:timers/promises';
import type { BareIncus } from './bare.ts';
import { median, timed } from '../figures.ts';
import type { BenchService } from '../service.ts';

const waiting = 3;
const rounds = 6;

export async function createsFromPool(
  service: BenchService,
  bare: BareIncus,
): Promise<Record<string, number>> {
  await service.start({ CUBICLE_POOL: `${waiting}` });
  const sizes = ['small', 'medium', 'large'];
  const [times, desktops]: [number[], number[]] = [[], []];
  for (let n = 0; n < rounds; n += 1) {
    while ((await bare.running()).length < waiting) await pause(100);
    // The last of them has booted a moment ago.
    await pause(3_000);
    const began = performance.now();
    const create = () => service.good('POST', '/computers', { size: sizes[n % sizes.length] });
    const [ms, { id }] = await timed(create);
    times.push(ms);
    await service.desktopUp(id);
    desktops.push(performance.now() - began);
    await service.good('DELETE', `/computers/${id}`);
  }
  console.log(
    `create from the pool ${median(times).toFixed(0)} ms, with a command of its desktop ${median(desktops).toFixed(0)} ms`,
  );
  return { pool_create_ms: median(times), pool_desktop_ms: median(desktops) };
}
