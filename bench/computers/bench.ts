// Computers against the engine alone, in one run on the same machine: create, desktop, exec; and what users
// wait for besides. Rounds of ours and of the engine alternate, so that what else the machine does falls on
// both alike.

import { setTimeout as pause } from 'node:timers/promises';
import { BareIncus } from './bare.ts';
import { listOfThousand } from './listing.ts';
import { createsFromPool } from './pool.ts';
import { BenchService } from '../service.ts';
import { median, round, timed } from '../figures.ts';

const rounds = 12;
const execs = 200;
const burst = 20;
const fileBytes = 64 * 1024 * 1024;

export async function run(): Promise<void> {
  const service = await BenchService.start({ CUBICLE_POOL: '0' });
  let figures: Record<string, number> = {};
  try {
    const bare = await BareIncus.of(service.dataDir);
    figures = {
      ...(await creates(service, bare)),
      ...(await commands(service, bare)),
      ...(await sessions(service)),
      ...(await clones(service)),
      ...(await files(service)),
      ...(await atOnce(service, bare)),
    };
    await service.stop();
    Object.assign(figures, await createsFromPool(service, bare));
    bare.close();
  } finally {
    await service.end();
  }
  Object.assign(figures, await listOfThousand());
  const rounded = Object.entries(figures).map(([name, value]) => [name, round(value)]);
  console.log(JSON.stringify({ bench: 'computers', ...Object.fromEntries(rounded) }));
}

async function creates(service: BenchService, bare: BareIncus) {
  // The first of an image unpacks it.
  await bare.delete(await bare.createAndStart());
  const times = { ours: [] as number[], desktop: [] as number[], bare: [] as number[] };
  for (let n = 0; n < rounds; n += 1) {
    const [bareMs, name] = await timed(() => bare.createAndStart());
    await bare.delete(name);
    const began = performance.now();
    const { id } = await service.good('POST', '/computers', { size: 'small' });
    times.ours.push(performance.now() - began);
    await service.desktopUp(id);
    times.desktop.push(performance.now() - began);
    times.bare.push(bareMs);
    await service.good('DELETE', `/computers/${id}`);
    say(`create ${at(times.ours)} desktop ${at(times.desktop)} engine ${at(times.bare)}`);
  }
  const engine = median(times.bare);
  return {
    create_ratio: median(times.ours) / engine,
    desktop_ratio: median(times.desktop) / engine,
    create_ms: median(times.ours),
    desktop_ms: median(times.desktop),
    engine_create_ms: engine,
  };
}

async function commands(service: BenchService, bare: BareIncus) {
  const { id } = await service.good('POST', '/computers', { size: 'small' });
  await service.desktopUp(id);
  const name = await bare.createAndStart();
  const [ours, engine]: [number[], number[]] = [[], []];
  for (let n = 0; n < execs; n += 1) {
    const call = () => service.good('POST', `/computers/${id}/exec`, { command: 'true' });
    ours.push((await timed(call))[0]);
    if (n % 5 === 0) engine.push((await timed(() => bare.exec(name, ['true'])))[0]);
  }
  await bare.delete(name);
  await service.good('DELETE', `/computers/${id}`);
  say(`exec ${median(ours).toFixed(1)} ms, engine ${median(engine).toFixed(1)} ms`);
  return {
    exec_ratio: median(ours) / median(engine),
    exec_ms: median(ours),
    engine_exec_ms: median(engine),
  };
}

async function sessions(service: BenchService) {
  const { id } = await service.good('POST', '/computers', { size: 'small' });
  await service.desktopUp(id);
  const [suspend, resume]: [number[], number[]] = [[], []];
  for (let n = 0; n < rounds; n += 1) {
    suspend.push((await timed(() => service.good('POST', `/computers/${id}/suspend`)))[0]);
    resume.push((await timed(() => service.good('POST', `/computers/${id}/start`)))[0]);
  }
  await service.good('DELETE', `/computers/${id}`);
  say(`suspend ${at(suspend)} resume ${at(resume)}`);
  return { suspend_ms: median(suspend), resume_ms: median(resume) };
}

async function clones(service: BenchService) {
  const { id } = await service.good('POST', '/computers', { size: 'small', start: false });
  const times: number[] = [];
  for (let n = 0; n < rounds; n += 1) {
    const began = performance.now();
    const copy = await service.good('POST', `/computers/${id}/clone`, {});
    while ((await service.good('GET', `/operations/${copy.operation_id}`)).state === 'running') {
      await pause(5);
    }
    times.push(performance.now() - began);
    await service.good('DELETE', `/computers/${copy.id}`);
  }
  await service.good('DELETE', `/computers/${id}`);
  say(`clone ${at(times)}`);
  return { clone_ms: median(times) };
}

async function files(service: BenchService) {
  const { id } = await service.good('POST', '/computers', { size: 'small' });
  await service.desktopUp(id);
  const path = `/computers/${id}/files?path=/root/big`;
  const content = new Uint8Array(fileBytes).fill(7);
  const [up, down]: [number[], number[]] = [[], []];
  for (let n = 0; n < 5; n += 1) {
    up.push((await timed(async () => (await service.raw('PUT', path, content)).text()))[0]);
    down.push((await timed(async () => (await service.raw('GET', path)).arrayBuffer()))[0]);
  }
  await service.good('DELETE', `/computers/${id}`);
  const speed = (times: number[]) => fileBytes / 1_000 / median(times);
  say(`upload ${speed(up).toFixed(0)} MB/s download ${speed(down).toFixed(0)} MB/s`);
  return { upload_mb_s: speed(up), download_mb_s: speed(down) };
}

async function atOnce(service: BenchService, bare: BareIncus) {
  const creating = () =>
    Promise.all(
      Array.from({ length: burst }, () => service.good('POST', '/computers', { size: 'small' })),
    );
  const [ms, made] = await timed(creating);
  for (const { id } of made) await service.desktopUp(id);
  await pause(5_000);
  const names = await bare.running();
  const memory = await Promise.all(names.map((name) => bare.memory(name)));
  await Promise.all(made.map(({ id }) => service.good('DELETE', `/computers/${id}`)));
  say(`${burst} creates at once ${ms.toFixed(0)} ms`);
  return { creates_at_once_20_ms: ms, idle_memory_mb: median(memory) / 2 ** 20 };
}

function at(times: readonly number[]): string {
  return `${median(times).toFixed(0)} ms`;
}

function say(line: string): void {
  console.log(line);
}
