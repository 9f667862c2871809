// Servers killed at random under load: every event that hosts told is accepted by every receiver that
// subscribed to it. CUBICLE_TEST_CRASH_S makes it longer.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { HostEvent } from '../../packages/contract/host/api.ts';
import { newId } from '../../packages/server/app/secrets.ts';
import { Operator } from '../../packages/server/app/operator.ts';
import { Database, sql } from '../../packages/server/db/database.ts';
import { registerHost } from '../../packages/server/db/hosts.ts';
import { makeDatabase } from '../support/database.ts';
import { Ground, type ServiceProcess } from '../support/process.ts';
import { authority, Receiver } from '../support/receiver.ts';
import { newEmail } from '../support/service.ts';
import { SimulatedHost } from '../support/simulated-host.ts';
import { until } from '../support/until.ts';
import { subscribed } from '../support/webhooks.ts';

const seconds = Number(process.env['CUBICLE_TEST_CRASH_S'] ?? 30);
const servers = 2;
const computersEach = 4;

test('Part 6.1 3: servers killed at random lose no event, and leave no delivery stuck', async (t) => {
  const ground = Ground.of(t);
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-crash-'));
  const kept = await makeDatabase();
  const ca = join(folder, 'authority.pem');
  await writeFile(ca, authority.cert);
  const settings = {
    DATABASE_URL: kept.url,
    CUBICLE_KEYRING: join(folder, 'keyring'),
    CUBICLE_WEBHOOK_ALLOW: '127.0.0.0/8',
    CUBICLE_WEBHOOK_CA: ca,
    CUBICLE_WEBHOOK_WAITS: '1,1,1,1,1,1,1',
  };
  const folders = await Promise.all(Array.from({ length: servers }, () => ground.folder()));
  const services = await Promise.all(folders.map((one) => ground.start(one, settings)));
  const database = new Database({ connectionString: kept.url }, 4);
  const hosts = await Promise.all(
    ['one', 'two'].map((name) => SimulatedHost.start(join(folder, name))),
  );
  const receivers: Receiver[] = [];
  t.after(async () => {
    await ground.clear();
    for (const host of hosts) await host.stop();
    for (const receiver of receivers) await receiver.stop();
    await database.close();
    await kept.drop();
    await rm(folder, { recursive: true, force: true });
  });

  const { account, key } = await new Operator(database).createAccount({
    name: 'Crash',
    plan: 'swarm',
    owner: newEmail(),
  });
  const computers: { host: SimulatedHost; id: string }[] = [];
  for (const host of hosts) {
    await registerHost(database, host.row);
    for (let n = 0; n < computersEach; n += 1) {
      const wish = { account_id: account.id, workspace_id: null, start: false };
      computers.push({ host, id: await host.give(database, wish) });
    }
  }
  const accepted = [new Set<string>(), new Set<string>(), new Set<string>()];
  const filters = [
    { wish: {}, hears: () => true },
    {
      wish: { events: ['computer.stopped'] },
      hears: (e: HostEvent) => e.type === 'computer.stopped',
    },
    {
      wish: { computers: [computers[0]?.id] },
      hears: (e: HostEvent) => e.computer === computers[0]?.id,
    },
  ];
  for (const [n, { wish }] of filters.entries()) {
    const receiver = await Receiver.start((_request, response, { body }) => {
      const moody = Math.random();
      if (moody < 0.05) return response.destroy();
      if (moody < 0.1) return response.writeHead(500).end();
      accepted[n]?.add(body);
      return response.writeHead(200).end();
    });
    receivers.push(receiver);
    await subscribed((services[0] as ServiceProcess).as(key.raw), receiver.url, wish);
  }

  const emitted: HostEvent[] = [];
  const ends = performance.now() + seconds * 1_000;
  const running = () => performance.now() < ends;
  const load = computers.map(async ({ host, id }) => {
    for (let on = true; running(); on = !on) {
      const operation = newId('operation');
      await host.command(
        id,
        on
          ? { kind: 'start', operation, resume_only: false }
          : { kind: 'stop', operation, force: true },
      );
      await pause(Math.random() * 40);
    }
  });
  let kills = 0;
  // Each by itself, so that now and then none is there.
  const killers = folders.map(async (one, n) => {
    while (running()) {
      await pause(Math.random() * 3_000);
      await (services[n] as ServiceProcess).kill('SIGKILL');
      kills += 1;
      services[n] = await ground.start(one, settings);
    }
  });
  await Promise.all([...load, ...killers]);
  for (const host of hosts) {
    const never = new AbortController().signal;
    let after: string | undefined;
    for (;;) {
      const page = await host.near.events(after, { waitMs: 0, most: 500, signal: never });
      if (page.events.length === 0) break;
      emitted.push(...page.events);
      after = page.cursor;
    }
  }
  assert.ok(emitted.length > computers.length && kills > 0);
  assert.ok(emitted.every(({ type }) => type !== 'gap'));
  for (const [n, { hears }] of filters.entries()) {
    const expected = emitted.filter(hears).map(({ body }) => body);
    // How much piled up while no server was there is the machine's: it goes on until all is there.
    const missing = () => expected.filter((body) => accepted[n]?.has(body) !== true).length;
    for (let left = missing(); left > 0; left = missing()) {
      await until(`receiver ${n} has one of ${left} more`, () => missing() < left);
    }
    assert.equal(accepted[n]?.size, expected.length, 'and nothing that never happened');
  }
  const unfinished = sql(`SELECT id, state FROM webhook_deliveries WHERE state <> 'delivered'`);
  await until('nothing is left', async () => (await database.run(unfinished, [])).length === 0);
  const sent = receivers.reduce((sum, { received }) => sum + received.length, 0);
  const needed = filters.reduce((sum, { hears }) => sum + emitted.filter(hears).length, 0);
  t.diagnostic(`${emitted.length} events, ${kills} kills, ${needed} deliveries, ${sent} sent`);
});
