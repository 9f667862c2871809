// Webhooks: deliveries a second from a host's event to the receiver's answer, against a bare loop of signed
// HTTPS posts with the same concurrency; how long an event is on its way at a tenth of that, also with a
// million deliveries pending; and what nine receivers get while a tenth hangs.

import { Agent, request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { limits } from '../../packages/contract/limits.ts';
import { sql } from '../../packages/server/db/database.ts';
import { signatures } from '../../packages/server/webhooks/signature.ts';
import { median, round } from '../figures.ts';
import { eventText, type Subscription, World } from './world.ts';

const receivers = 10;
const rounds = 5;
const each = 600;
const latencyMs = 3_000;
const backlog = 1_000_000;

export async function run(): Promise<void> {
  const world = await World.open(receivers);
  const full = await World.open(receivers);
  try {
    const flood = await compareWithBare(world);
    console.log(`adding ${backlog} pending deliveries to another database`);
    await addBacklog(full);
    await ours(full);
    const waits = await compareLatencies(world, full, flood.ours / 10);
    const kept: number[] = [];
    for (let n = 0; n < rounds; n += 1) {
      const whole = await nine(world, -1);
      const hung = await nine(world, receivers - 1);
      console.log(
        `nine receivers ${whole.toFixed(0)}/s, beside one that hangs ${hung.toFixed(0)}/s`,
      );
      kept.push(hung / whole);
    }
    console.log(
      JSON.stringify({
        bench: 'webhooks',
        ratio: round(flood.ratio),
        delivered_per_second: Math.round(flood.ours),
        bare_per_second: Math.round(flood.bare),
        ...waits,
        hanging_kept: round(median(kept)),
      }),
    );
  } finally {
    await full.close();
    await world.close();
  }
}

async function compareWithBare(
  world: World,
): Promise<{ ratio: number; ours: number; bare: number }> {
  await ours(world);
  await bare(world);
  const results: { ratio: number; ours: number; bare: number }[] = [];
  for (let n = 0; n < rounds; n += 1) {
    const [loop, delivered] = [await bare(world), await ours(world)];
    console.log(`delivered ${delivered.toFixed(0)}/s, bare ${loop.toFixed(0)}/s`);
    results.push({ ratio: delivered / loop, ours: delivered, bare: loop });
  }
  return results.toSorted((a, b) => a.ratio - b.ratio)[(rounds - 1) / 2] as (typeof results)[0];
}

/** In alternating rounds, so that what else the machine does falls on both alike. */
async function compareLatencies(world: World, full: World, perSecond: number): Promise<object> {
  const [calm, late]: [Latency[], Latency[]] = [[], []];
  for (let n = 0; n < rounds; n += 1) {
    calm.push(await latency(world, perSecond));
    late.push(await latency(full, perSecond));
    console.log(
      `latency ${JSON.stringify(calm.at(-1))}, with backlog ${JSON.stringify(late.at(-1))}`,
    );
  }
  const of = (values: readonly Latency[], name: keyof Latency) =>
    median(values.map((value) => value[name]));
  return {
    p50_ms: round(of(calm, 'p50')),
    p99_ms: round(of(calm, 'p99')),
    backlog_p50_ms: round(of(late, 'p50')),
    backlog_p99_ms: round(of(late, 'p99')),
    backlog_growth: round(median(late.map(({ p50 }, n) => p50 / (calm[n]?.p50 ?? p50)))),
  };
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** Deliveries a second of a flood to all receivers. */
async function ours(world: World): Promise<number> {
  await world.clear();
  const began = performance.now();
  for (let n = 0; n < each * receivers; n += 1) world.tell(n % receivers);
  await until(async () => sum((await world.heard()).counts) >= each * receivers);
  const perSecond = (each * receivers * 1_000) / (performance.now() - began);
  await settled(world);
  return perSecond;
}

/** Deliveries a second of a flood to the first nine, while the tenth hangs or is well. */
async function nine(world: World, hanging: number): Promise<number> {
  await world.hang(hanging);
  await world.clear();
  // It has its share of the flood; what was not taken by the end of a round waits for its retries.
  const began = performance.now();
  for (let n = 0; n < each * receivers; n += 1) world.tell(n % receivers);
  const others = receivers - 1;
  const all = async () => sum((await world.heard()).counts.slice(0, others)) >= each * others;
  await until(all);
  const perSecond = (each * others * 1_000) / (performance.now() - began);
  await world.hang(-1);
  await settled(world);
  return perSecond;
}

async function bare({ subscriptions, authority }: World): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 64, ca: authority });
  const began = performance.now();
  let sent = 0;
  await Promise.all(
    subscriptions.flatMap((subscription) => {
      let left = each;
      return Array.from({ length: limits.webhookConcurrency }, async () => {
        while (left > 0) {
          left -= 1;
          await post(subscription, agent, sent);
          sent += 1;
        }
      });
    }),
  );
  agent.destroy();
  return (sent * 1_000) / (performance.now() - began);
}

function post({ computer, url, secret }: Subscription, agent: Agent, n: number): Promise<void> {
  const body = eventText(computer, n, `0000000000000000:${n}`, new Date());
  const id = `whd-${n.toString(16).padStart(16, '0')}`;
  const timestamp = Math.floor(Date.now() / 1_000);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures([secret], id, timestamp, body),
  };
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume().on('end', resolve);
    });
    sending.on('error', reject).end(body);
  });
}

async function latency(world: World, perSecond: number): Promise<Latency> {
  await world.clear();
  const count = Math.ceil((perSecond * latencyMs) / 1_000);
  const began = performance.now();
  for (let n = 0; n < count; n += 1) {
    world.tell(n % receivers);
    const early = (n * 1_000) / perSecond - (performance.now() - began);
    if (early > 1) await pause(early);
  }
  await until(async () => sum((await world.heard()).counts) >= count);
  const sorted = (await world.heard()).latencies.toSorted((a, b) => a - b);
  await settled(world);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

const addRows = sql(`
  INSERT INTO webhook_deliveries (id, webhook_id, event_type, computer, cursor, body, attempts, next_at, created_at)
  SELECT 'whd-' || lpad(to_hex(n), 16, '0'), ($1::text[])[1 + n % cardinality($1::text[])], 'computer.idle',
    'vm-000000000000', 'e:' || n, repeat('x', 200), 3, now() + interval '1 day', now() - n * interval '1 ms'
  FROM generate_series($2::int, $3::int) n`);
const vacuum = sql('VACUUM ANALYZE webhook_deliveries');

/** Retries of the same subscriptions, due tomorrow. */
async function addBacklog({ database, subscriptions }: World): Promise<void> {
  const ids = subscriptions.map(({ id }) => id);
  const step = 50_000;
  for (let n = 0; n < backlog; n += step) await database.run(addRows, [ids, n + 1, n + step]);
  await database.run(vacuum, []).catch(console.error);
}

const unfinished = sql(`
  SELECT 1 FROM webhook_deliveries WHERE state = 'in_flight'
  UNION ALL (SELECT 1 FROM webhook_deliveries WHERE webhook_id = ANY($1) AND state = 'pending' AND next_at < now() LIMIT 1)
  LIMIT 1`);

/** Everything that was due is written down. */
async function settled({ database, subscriptions }: World): Promise<void> {
  const ids = subscriptions.map(({ id }) => id);
  await until(async () => (await database.run(unfinished, [ids])).length === 0);
}

async function until(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await pause(20);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
