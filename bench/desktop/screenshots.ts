// Fresh pictures of the screen as a caller gets them over HTTP, against `maim` run in the guest and timed
// there: of the guest's tools it is the quickest. It does not shrink, so its JPEG has the whole screen.

import { median, percentile, timed } from '../figures.ts';
import type { BenchGuest } from './guest.ts';

const rounds = 25;
const eachRound = 4;

const kinds = {
  png: { query: 'fresh=1', tool: 'maim -u -f png' },
  jpeg: { query: 'fresh=1&w=640', tool: 'maim -u -f jpg -m 7' },
};

export async function screenshots(guest: BenchGuest): Promise<Record<string, number>> {
  await guest.showSomething();
  const figures: Record<string, number> = {};
  for (const [kind, { query, tool }] of Object.entries(kinds)) {
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let n = 0; n < rounds; n += 1) {
      for (let i = 0; i < eachRound; i += 1) ours.push((await timed(() => take(guest, query)))[0]);
      theirs.push(...(await guest.numbers('pictures', `${eachRound}`, tool)));
    }
    const ratio = median(ours) / median(theirs);
    console.log(
      `${kind} ${median(ours).toFixed(1)} ms, by a tool in the guest ${median(theirs).toFixed(1)} ms`,
    );
    figures[`screenshot_fresh_${kind}_p50_ms`] = median(ours);
    figures[`screenshot_fresh_${kind}_p95_ms`] = percentile(ours, 0.95);
    figures[`screenshot_fresh_${kind}_ratio`] = ratio;
  }
  return figures;
}

async function take({ service, id }: BenchGuest, query: string): Promise<void> {
  const answer = await service.raw('GET', `/computers/${id}/screenshot?${query}`);
  if (answer.status !== 200) throw new Error(await answer.text());
  await answer.arrayBuffer();
}
