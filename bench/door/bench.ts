// The door against a bare node:http server that answers the same bytes, in one run under the same load:
// GET /workspaces/{id} with authority, budget and read. Measured with a small database and with a large
// one, in short alternating rounds, so that what else the machine does falls on both alike.

import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEmbeddedPostgres } from '../../packages/server/postgres/embedded.ts';
import { round } from '../figures.ts';
import { fill, type Target } from './fill.ts';
import type { Load, Measured } from './load.ts';

const rounds = 5;
const roundMs = 2_500;
const connections = 32;
const small = 2_000;
const large = 100_000;

export async function run(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-bench-'));
  const service = spawn(process.execPath, [file('../../packages/cli/main.ts'), 'start'], {
    env: {
      ...process.env,
      CUBICLE_DATA: dataDir,
      CUBICLE_PORT: '0',
      CUBICLE_LOG: 'warn',
      CUBICLE_ENGINE: 'none',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const loader = fork(file('./load.ts'));
  const bare = fork(file('./bare.ts'));
  try {
    const door = await doorUrl(service, dataDir);
    const postgres = await openEmbeddedPostgres({ dataDir, role: 'command', say: () => {} });
    console.log(`filling ${small} keys and workspaces`);
    const few = await fill(postgres.connection, 0, small, small);
    const sample = await answerOf(`${door}/workspaces/${few[0]?.workspace}`, few[0]?.key ?? '');
    const bareUrl = await startBare(bare, sample);

    const before = await compare(loader, few, door, bareUrl);
    console.log(`filling ${large} keys and workspaces`);
    const spread = await fill(postgres.connection, small, large, small);
    const after = await compare(loader, spread, door, bareUrl);
    await postgres.stop();

    console.log(
      JSON.stringify({
        bench: 'door',
        ratio: round(after.ratio),
        p50_ms: round(after.door.p50),
        p99_ms: round(after.door.p99),
        bare_p99_ms: round(after.bare.p99),
        ratio_small: round(before.ratio),
        p50_small_ms: round(before.door.p50),
        p50_growth: round(after.door.p50 / before.door.p50),
        requests_per_second: Math.round(after.door.perSecond),
        bare_requests_per_second: Math.round(after.bare.perSecond),
      }),
    );
  } finally {
    loader.kill();
    bare.kill();
    service.kill('SIGTERM');
    await once(service, 'exit');
    await rm(dataDir, { recursive: true, force: true });
  }
}

interface Comparison {
  ratio: number;
  door: Measured;
  bare: Measured;
}

async function compare(
  loader: ChildProcess,
  targets: Target[],
  door: string,
  bare: string,
): Promise<Comparison> {
  const load = (url: string): Load => ({ url, targets, connections, ms: roundMs });
  await measure(loader, load(door));
  await measure(loader, load(bare));
  const results: Comparison[] = [];
  for (let n = 0; n < rounds; n += 1) {
    const ofBare = await measure(loader, load(bare));
    const ofDoor = await measure(loader, load(door));
    const ratio = ofDoor.perSecond / ofBare.perSecond;
    console.log(
      `door ${ofDoor.perSecond.toFixed(0)}/s, bare ${ofBare.perSecond.toFixed(0)}/s, ratio ${ratio.toFixed(2)}`,
    );
    results.push({ ratio, door: ofDoor, bare: ofBare });
  }
  // The median round.
  return results.toSorted((a, b) => a.ratio - b.ratio)[Math.floor(rounds / 2)] as Comparison;
}

async function measure(loader: ChildProcess, load: Load): Promise<Measured> {
  loader.send(load);
  const [measured] = (await once(loader, 'message')) as [Measured];
  if (measured.refused > 0) throw new Error(`${measured.refused} answers were not 200`);
  return measured;
}

async function doorUrl(service: ChildProcess, dataDir: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    service.on('exit', () => reject(new Error('the service ended')));
    service.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.includes('ready at')) resolve();
    });
  });
  const kept = JSON.parse(await readFile(join(dataDir, 'first-key.json'), 'utf8')) as {
    base_url: string;
  };
  return kept.base_url;
}

async function answerOf(
  url: string,
  key: string,
): Promise<{ headers: [string, string][]; body: string }> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  return { headers: [...answer.headers], body: await answer.text() };
}

async function startBare(bare: ChildProcess, sample: object): Promise<string> {
  bare.send(sample);
  const [port] = (await once(bare, 'message')) as [number];
  return `http://127.0.0.1:${port}/api/v1`;
}

function file(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
