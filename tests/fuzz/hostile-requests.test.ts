// Tens of thousands of hostile requests over raw sockets, several connections at once, several requests
// per write. CUBICLE_FUZZ_REQUESTS says how many, CUBICLE_FUZZ_SEED repeats a run.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, suite, test, type TestContext } from 'node:test';
import { Ground, type ServiceProcess } from '../support/process.ts';
import { startService, type TestService } from '../support/service.ts';
import { Lane, share } from './lane.ts';
import { makeJunk } from './odd-parts.ts';
import { Random } from './random.ts';
import { Verdict } from './verdict.ts';

const leastRequests = 50_000;
const requests = Number(process.env['CUBICLE_FUZZ_REQUESTS'] ?? leastRequests);
const seed = Number(process.env['CUBICLE_FUZZ_SEED'] ?? randomInt(2 ** 31));
const laneCount = 16;

suite('hostile requests', { timeout: 600_000 + requests * 10 }, () => {
  let service: TestService;
  let ground: Ground;
  let target: ServiceProcess;
  before(async () => {
    service = await startService();
    await service.operator.setPlan('swarm', { rate_units: 1_000_000_000 });
    ground = new Ground();
    // A process of its own, as it is for its users: what would end it ends the test.
    target = await ground.start(await ground.folder(), { DATABASE_URL: service.databaseUrl });
  });
  after(async () => {
    await ground.clear();
    await service.stop();
  });

  test('Part 1 2, Part 2 Error, Part 7: no hostile request is answered 500, left hanging, or obeyed by halves', async (t) => {
    t.diagnostic(`CUBICLE_FUZZ_SEED=${seed} CUBICLE_FUZZ_REQUESTS=${requests}`);
    await attack(t, service, target);
  });
});

async function attack(t: TestContext, service: TestService, target: ServiceProcess): Promise<void> {
  const verdict = new Verdict();
  const junk = makeJunk(seed);
  const shared = await share(service);
  const port = Number(new URL(target.baseUrl).port);
  const lanes: Lane[] = [];
  for (let n = 0; n < laneCount; n += 1) {
    const random = new Random(seed + n * 7_919);
    lanes.push(await Lane.open(service, port, { lane: n, random, junk }, shared, verdict));
  }
  try {
    await Promise.all(lanes.map((lane) => lane.run(Math.ceil(requests / laneCount))));
  } catch (error) {
    const alive = await target.health().catch(() => undefined);
    if (alive !== undefined) throw error;
    throw new Error(`the service ended: ${(await target.ended).stderr}`, { cause: error });
  }
  for (const lane of lanes) await lane.model.assertStored(service.database);

  const tally = [...verdict.tally].toSorted(([a], [b]) => a - b);
  t.diagnostic(`answers: ${tally.map(([status, count]) => `${count} × ${status}`).join(', ')}`);
  // Also counts what was answered to nobody, its sender having gone.
  const metrics = (await target.as().get(`${target.origin}/metrics`)).text;
  assert.match(metrics, /cubicle_http_answers_total\{[^}]*status="200"\}/);
  assert.doesNotMatch(metrics, /cubicle_http_answers_total\{[^}]*status="5\d\d"\}/);
  assert.equal((await target.health()).status, 200);
  assert.equal(target.stderr, '');
  if (requests < leastRequests) return;
  for (const status of [200, 201, 204, 302, 308, 400, 401, 403, 404, 405, 413, 429, 431]) {
    assert.ok(verdict.tally.has(status), `nothing was answered ${status}`);
  }
}
