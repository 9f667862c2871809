// The desktop and its sockets against the least that could do the same, in one run on the same machine:
// pictures of the screen, events, terminals, and what a million events leave in memory. Rounds of ours and of
// the other alternate, so that what else the machine does falls on both alike.

import { round } from '../figures.ts';
import { BenchService } from '../service.ts';
import { fanout } from './fanout.ts';
import { BenchGuest } from './guest.ts';
import { latency } from './latency.ts';
import { memory } from './memory.ts';
import { screenshots } from './screenshots.ts';
import { terminal } from './terminal.ts';

export async function run(): Promise<void> {
  // First, while nothing else is in this process's memory.
  const figures: Record<string, number> = { ...(await memory()), ...(await fanout()) };
  const service = await BenchService.start({ CUBICLE_POOL: '0' });
  try {
    const guest = await BenchGuest.create(service);
    Object.assign(figures, await latency(guest), await screenshots(guest), await terminal(guest));
  } finally {
    await service.end();
  }
  const rounded = Object.entries(figures).map(([name, value]) => [name, round(value)]);
  console.log(JSON.stringify({ bench: 'desktop', ...Object.fromEntries(rounded) }));
}
