import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import {
  begun,
  build,
  built,
  ended,
  endSlowly,
  newDocument,
  publish,
  slowDocument,
} from '../support/builds.ts';
import type { Answer } from '../support/client.ts';
import { small } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const age = sql(`
  UPDATE build_requests SET at = at - make_interval(secs => $2) WHERE account_id = $1`);
// Older ones are forgotten now and then.
const rows = sql(`
  SELECT charged FROM build_requests
  WHERE account_id = $1 AND at > clock_timestamp() - interval '24 hours' ORDER BY seq`);

suite('what builds may take', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  afterEach(async () => {
    await service.operator.setPlan('solo', { builds_per_day: 10, disk_pool_gb: 200 });
    await endSlowly(service);
  });
  after(() => service.stop());

  const charges = async (account: string) =>
    (await service.database.run<{ charged: boolean }>(rows, [account])).map((row) => row.charged);

  function assertSpent(answer: Answer, sentence: RegExp, most: number): void {
    assertRefused(answer, 429);
    assert.match(answer.body.error, sentence);
    const seconds = Number(answer.headers['retry-after']);
    assert.ok(seconds > most - 600 && seconds <= most, `Retry-After ${seconds} of ${most}`);
  }

  test('Part 4 Builds 8, Part 8 Sizes: admitted builds count against the allowance, failed ones too, until a day has passed', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 2 });
    const { account, as } = await service.account('solo');
    const document = newDocument(account.id);
    await built(as, document);
    const failing = newDocument(account.id);
    failing.spec.build.push({ run: 'exit 1' });
    assert.equal((await ended(as, (await begun(as, failing)).id)).status, 'failed');
    assert.deepEqual(await charges(account.id), [true, true]);
    await service.database.run(age, [account.id, 3_600]);
    const words = /allowance is spent: 2 builds in the last 24 hours, of 2 that the plan allows/;
    assertSpent(await build(as, newDocument(account.id)), words, 23 * 3_600);
    assert.deepEqual((await as.get('/builds')).body.length, 2, 'nothing was begun');
    await service.database.run(age, [account.id, 23 * 3_600]);
    await built(as, newDocument(account.id));
    assert.deepEqual(await charges(account.id), [true]);
  });

  test('Part 4 Builds 8: a reuse is no build, unless it is asked for anew', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 2 });
    const { account, as } = await service.account('solo');
    const document = newDocument(account.id);
    await built(as, document);
    for (let i = 0; i < 3; i += 1) await built(as, document);
    assert.deepEqual(await charges(account.id), [true, false, false, false]);
    await built(as, document, '?no_reuse=true');
    assert.deepEqual(await charges(account.id), [true, false, false, false, true]);
    assertSpent(await build(as, newDocument(account.id)), /allowance/, 24 * 3_600);
  });

  test('Part 4 Builds 8, Part 8 Sizes: every request that reaches a host meets a ceiling ten times as large; what is refused before counts nowhere', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 1 });
    const { account, as } = await service.account('solo');
    assertRefused(await build(as, newDocument('acc-000000000000')), 403);
    assertRefused(await build(as, newDocument(account.id, { family: 'golden' })), 403);
    assert.deepEqual(await charges(account.id), []);
    const { id } = await begun(as, slowDocument(account.id));
    assertSpent(await build(as, newDocument(account.id)), /allowance/, 24 * 3_600);
    assert.deepEqual(await charges(account.id), [true], 'a 429 is no request');
    const refused = [
      () => build(as, 'kind: Thing'),
      () => build(as, newDocument(account.id, { from: 'system/none' })),
      () => build(as, newDocument(account.id, { secrets: [] })),
    ];
    assertRefused(await (refused[0] as () => Promise<Answer>)(), 400, undefined, {
      problems: (await build(as, 'kind: Thing')).body.problems,
    });
    for (let i = 0; i < 7; i += 1) assert.equal((await refused[1]?.())?.status, 400);
    assert.equal((await charges(account.id)).length, 10);
    for (const again of refused) {
      assertSpent(await again(), /ceiling .* met: 10 in the last 24 hours, of 10/, 24 * 3_600);
    }
    await service.host.near.removeBuild(id, 30_000);
    await service.operator.setAccount(account.id, { plan: 'none' });
    assertRefused(await build(as, newDocument(account.id)), 402);
    assert.equal((await charges(account.id)).length, 10);
  });

  test('Part 4 Builds 8, Part 8 Sizes: a burst never passes the ceiling, and not even the last place goes to two', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 2 });
    const { account, as } = await service.account('solo');
    const document = newDocument(account.id);
    await built(as, document);
    const burst = await Promise.all(Array.from({ length: 30 }, () => build(as, document)));
    const statuses = burst.map(({ status }) => status).toSorted((a, b) => a - b);
    assert.deepEqual(statuses, [...Array(19).fill(202), ...Array(11).fill(429)]);
    assert.equal((await charges(account.id)).length, 20);
  });

  test('Part 4 Builds 7, Part 7 Conflicts 4: a second build on a busy host is a conflict, and no build', async () => {
    const { account, as } = await service.account('solo');
    await begun(as, slowDocument(account.id));
    assertRefused(await build(as, newDocument(account.id)), 409, 'contention');
    assert.deepEqual(await charges(account.id), [true, false]);
    assert.equal((await as.get('/builds')).body.length, 1);
    await endSlowly(service);
    await built(as, newDocument(account.id));
  });

  test('Part 4 Builds 9, Part 2 AccountQuota 5: kept builds take room of the pool, for computers too, and a build past it is told all of it', async () => {
    await service.operator.setPlan('solo', { disk_pool_gb: 40 });
    const { account, as } = await service.account('solo');
    assert.equal((await as.post('/computers', { ...small, start: false })).status, 201);
    const document = newDocument(account.id, { disk_gb: 20 });
    await built(as, document);
    // A reuse keeps nothing.
    await built(as, document);
    const past = await build(as, newDocument(account.id, { disk_gb: 11 }));
    assertRefused(past, 402);
    assert.match(past.body.error, /has 40 GB; computers take 10 GB .* kept builds 20 GB, .* 11 GB/);
    assert.deepEqual(await charges(account.id), [true, false], 'it costs nothing');
    // A failed one gives its room back.
    const failing = newDocument(account.id, { disk_gb: 10 });
    failing.spec.build.push({ run: 'exit 1' });
    assert.equal((await ended(as, (await begun(as, failing)).id)).status, 'failed');
    await built(as, newDocument(account.id, { disk_gb: 10 }));
    const { body: quota } = await as.get('/account');
    assert.equal(quota.usage.configured_disk_gb, 10, 'the read leaves them out');
    assertRefused(await as.post('/computers', { ...small, start: false }), 402);
  });

  test('Part 4 Builds 9, Part 8 Sizes: a family keeps its three newest, and older ones as long as a computer uses them', async () => {
    await service.operator.setPlan('solo', { builds_per_day: 10 });
    const { account, as } = await service.account('solo');
    const documents = [1, 2, 3, 4, 5].map((n) => {
      const document = newDocument(account.id);
      document.metadata.version = `1.0.${n}`;
      return document;
    });
    const [oldest, second, ...newer] = documents;
    const kept = await built(as, oldest);
    assert.equal((await publish(as, oldest)).status, 201);
    const template = `${account.id}/own@1.0.1`;
    const computer = await as.post('/computers', { ...small, template, start: false });
    assert.equal(computer.status, 201, computer.text);
    const unused = await built(as, second);
    for (const document of newer) await built(as, document);
    const held = async () => (await service.host.near.builds()).builds.map(({ id }) => id);
    await until('the unused one is removed', async () => !(await held()).includes(unused.id));
    const listed = (await as.get('/builds')).body.map(({ id }: { id: string }) => id);
    assert.equal(listed.length, 4);
    assert.ok(listed.includes(kept.id) && !listed.includes(unused.id));
    assert.equal((await as.get(`/builds/${unused.id}/progress`)).body.phase, 'published');
    assert.equal((await publish(as, second)).status, 201);
    const removed = { ...small, template: `${account.id}/own@1.0.2`, start: false };
    assertRefused(await as.post('/computers', removed), 409);
    await as.delete(`/computers/${computer.body.id}`);
    await until(
      'the other one goes with its computer',
      async () => !(await held()).includes(kept.id),
    );
    await built(as, second);
    assert.equal((await as.post('/computers', removed)).status, 201);
  });
});
