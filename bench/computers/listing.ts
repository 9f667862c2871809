// GET /computers with a thousand computers, on the simulated engine.

import { median, timed } from '../figures.ts';
import { BenchService } from '../service.ts';

const computers = 1_000;
const inFlight = 20;
const rounds = 20;

export async function listOfThousand(): Promise<Record<string, number>> {
  const service = await BenchService.start({ CUBICLE_ENGINE: 'simulated' });
  try {
    let left = computers;
    const create = async () => {
      while (left > 0) {
        left -= 1;
        await service.good('POST', '/computers', { size: 'small' });
      }
    };
    await Promise.all(Array.from({ length: inFlight }, create));
    const times: number[] = [];
    for (let n = 0; n < rounds; n += 1) {
      const [ms, listed] = await timed(() => service.good('GET', '/computers'));
      if (listed.length !== computers) throw new Error(`${listed.length} computers were listed`);
      times.push(ms);
    }
    console.log(`a list of ${computers} ${median(times).toFixed(0)} ms`);
    return { list_1000_ms: median(times) };
  } finally {
    await service.end();
  }
}
