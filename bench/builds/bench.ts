// Builds against the same steps by hand with the engine's own commands, in one run on the same machine. Rounds
// of both alternate. By hand ends with a stopped instance, as ours does; publishing it is told apart.

import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, round, timed } from '../figures.ts';
import { BenchHost } from './host.ts';
import { ByHand, type Steps } from './by-hand.ts';

const rounds = 5;
const computers = 8;

const steps: Steps = {
  packages: ['jq', 'ripgrep', 'tree'],
  script: 'seq 300000 | sort -R | sha256sum >/opt/sum\ntree /etc | tail -n 1',
  path: '/opt/bench/readme',
  content: 'Made by a bench.\n'.repeat(1_000),
};

export async function run(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-bench-'));
  const host = await BenchHost.start(dataDir);
  try {
    const figures = { ...(await builds(host, await ByHand.of(dataDir))), ...(await creates(host)) };
    const rounded = Object.entries(figures).map(([name, value]) => [name, round(value)]);
    console.log(JSON.stringify({ bench: 'builds', ...Object.fromEntries(rounded) }));
  } finally {
    await host.end();
  }
}

async function builds(host: BenchHost, byHand: ByHand) {
  // The first of an image unpacks it.
  const first = newId();
  await host.build(first, { ...steps, packages: ['tree'] });
  await host.remove(first);
  const times = { ours: [] as number[], hand: [] as number[], publish: [] as number[] };
  for (let n = 0; n < rounds; n += 1) {
    times.hand.push((await timed(() => byHand.build(steps)))[0]);
    if (n === 0) times.publish.push((await timed(() => byHand.publish()))[0]);
    await byHand.remove();
    const id = newId();
    times.ours.push((await timed(() => host.build(id, steps)))[0]);
    await host.remove(id);
    console.log(`build ${at(times.ours)} by hand ${at(times.hand)} publish ${at(times.publish)}`);
  }
  const [ours, hand, publish] = [times.ours, times.hand, times.publish].map(median) as [
    number,
    number,
    number,
  ];
  return {
    build_ratio: ours / hand,
    build_ratio_with_publish: ours / (hand + publish),
    build_ms: ours,
    by_hand_ms: hand,
    by_hand_publish_ms: publish,
  };
}

/** From a build, from the image that the build was made from, and by cloning a computer. */
async function creates(host: BenchHost) {
  const build = newId();
  await host.build(build, { ...steps, packages: ['tree'] });
  const source = newId();
  await host.create(source, undefined);
  const times = { build: [] as number[], image: [] as number[], clone: [] as number[] };
  for (let n = 0; n < computers; n += 1) {
    for (const [of, make] of [
      ['build', (id: string) => host.create(id, build)],
      ['image', (id: string) => host.create(id, undefined)],
      ['clone', (id: string) => host.clone(id, source)],
    ] as const) {
      const id = newId();
      times[of].push((await timed(() => make(id)))[0]);
      await host.delete(id);
    }
  }
  await host.delete(source);
  await host.remove(build);
  return {
    create_from_build_over_clone: median(times.build) / median(times.clone),
    create_from_build_ms: median(times.build),
    create_from_image_ms: median(times.image),
    clone_ms: median(times.clone),
  };
}

const newId = (): string => `bench-${randomBytes(6).toString('hex')}`;

function at(times: readonly number[]): string {
  return times.length === 0 ? '-' : `${median(times).toFixed(0)} ms`;
}
