import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { act, acted, keepUnfinished, made, small } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('quota', () => {
  let service: TestService;
  let beside: Awaited<ReturnType<TestService['beside']>>;
  before(async () => {
    service = await startService({ simulated: true });
    beside = await service.beside();
  });
  after(async () => {
    await beside.stop();
    await service.stop();
  });

  const usage = async (as: Client) => (await as.get('/account')).body.usage;

  /** Exactly `most` succeed; the rest is refused by the plan, with the limit's number. */
  function assertCeiling(answers: readonly Answer[], most: number, limit: RegExp): void {
    assert.equal(answers.filter(({ status }) => status < 300).length, most);
    for (const answer of answers.filter(({ status }) => status >= 300)) {
      assertRefused(answer, 402);
      assert.match(answer.body.error, limit);
    }
  }

  test('Part 2 AccountQuota 5: twenty creates at once, at two processes, against a ceiling of ten make ten', async () => {
    await service.operator.setPlan('solo', { max_computers: 10, vcpu_pool: 100 });
    const { as, key } = await service.account('solo');
    const there = beside.as(key.raw);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? as : there).post('/computers', small)),
    );
    assertCeiling(answers, 10, /\b10 computers\b/);
    for (const reader of [as, there]) {
      const { usage: used, remaining } = (await reader.get('/account')).body;
      assert.deepEqual(
        [used.kept_computers, used.configured_vcpu, used.configured_disk_gb],
        [10, 10, 100],
      );
      assert.equal(used.running_or_reserved_ram_mb, 10 * 512);
      assert.equal(remaining.kept_computers, 0);
    }
    assert.equal((await there.get('/computers')).body.length, 10);
  });

  test('Part 2 AccountQuota 5: each pool holds against a burst, and names itself', async () => {
    const pools = {
      vcpu_pool: { most: 7, limit: /\b7 vCPU\b/ },
      disk_pool_gb: { most: 70, limit: /\b70 GB of disk\b/ },
      ram_pool_mb: { most: 7 * 512 + 100, limit: /\b3684 MB of running memory\b/ },
    };
    const roomy = { max_computers: 100, vcpu_pool: 100, disk_pool_gb: 1000, ram_pool_mb: 100_000 };
    for (const [pool, { most, limit }] of Object.entries(pools)) {
      await service.operator.setPlan('solo', { ...roomy, [pool]: most });
      const { as } = await service.account('solo');
      const burst = Array.from({ length: 12 }, () => as.post('/computers', small));
      assertCeiling(await Promise.all(burst), 7, limit);
      assert.equal((await usage(as)).kept_computers, 7);
    }
    await service.operator.setPlan('solo', roomy);
  });

  test('Part 2 AccountQuota 6, wire-computers 5: what is stopped takes no memory; a burst of starts is held to the pool', async () => {
    await service.operator.setPlan('studio', { ram_pool_mb: 3 * 512 });
    const { as } = await service.account('studio');
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push((await made(as, { start: false })).id);
    const starts = await Promise.all(ids.map((id) => act(as, id, 'start')));
    assertCeiling(starts, 3, /\b1536 MB of running memory\b/);
    const [first] = ids.filter((_, n) => starts[n]?.status === 200);
    const [refused] = ids.filter((_, n) => starts[n]?.status !== 200);
    assert.equal((await usage(as)).running_or_reserved_ram_mb, 3 * 512);
    await acted(as, first as string, 'suspend');
    await acted(as, refused as string, 'start');
    assertRefused(await act(as, first as string, 'start'), 402);
    assertRefused(
      await act(
        as,
        ids.find((_, n) => starts[n]?.status !== 200 && ids[n] !== refused) as string,
        'restart',
      ),
      402,
    );
    assert.equal((await usage(as)).running_or_reserved_computers, 3);
  });

  test('Part 2 AccountQuota 6: a resize replaces what is configured; reductions and unchanged overages pass after a downgrade', async () => {
    const { as, account } = await service.account('swarm');
    const { id } = await made(as, { cpu: 16, ram_mb: 32_768, disk_gb: 300, start: false });
    await made(as, { start: false });
    await service.operator.setPlan('solo', { max_computers: 1, vcpu_pool: 4, disk_pool_gb: 50 });
    await service.operator.setAccount(account.id, { plan: 'solo' });
    const resize = (wish: object) => as.patch(`/computers/${id}`, wish);
    const over = (await as.get('/account')).body;
    assert.deepEqual([over.usage.kept_computers, over.usage.configured_vcpu], [2, 17]);
    assert.deepEqual([over.remaining.kept_computers, over.remaining.configured_vcpu], [0, 0]);
    assert.equal((await resize({ cpu: 12 })).status, 200);
    assert.equal((await resize({ cpu: 12, disk_gb: 300 })).status, 200);
    assert.equal((await resize({ ram_mb: 16_384 })).status, 200);
    for (const wish of [{ cpu: 13 }, { disk_gb: 301 }, { ram_mb: 16_385 }]) {
      assertRefused(await resize(wish), 402);
    }
    assertRefused(await act(as, id, 'start'), 402);
    assert.equal((await usage(as)).configured_vcpu, 13);
    assertRefused(await as.post('/computers', small), 402);
    assert.equal((await as.delete(`/computers/${id}`)).status, 200);
    assert.equal((await usage(as)).configured_vcpu, 1);
  });

  test('wire-computers 4, Part 2 AccountQuota 6: no computer is larger than the plan’s largest', async () => {
    const { as } = await service.account('swarm');
    for (const [wish, limit] of [
      [{ cpu: 17 }, /\b16 vCPU per computer\b/],
      [{ ram_mb: 32_769 }, /\b32768 MB of memory per computer\b/],
      [{ disk_gb: 321 }, /\b320 GB of disk per computer\b/],
    ] as const) {
      const answer = await as.post('/computers', wish);
      assertRefused(answer, 402);
      assert.match(answer.body.error, limit);
    }
    assert.equal((await made(as, { cpu: 16, ram_mb: 32_768, disk_gb: 320 })).cpu, 16);
    const { as: without } = await service.account('none');
    assertRefused(await without.post('/computers', small), 402);
    assert.equal((await usage(without)).kept_computers, 0);
  });

  test('Part 2 AccountQuota 5: a create whose outcome was never heard is counted by admission, not by the read', async () => {
    await service.operator.setPlan('solo', {
      max_computers: 2,
      vcpu_pool: 10,
      disk_pool_gb: 100,
    });
    const { as, account } = await service.account('solo');
    await made(as);
    service.host.cable.fault('create', 'unasked');
    assert.equal((await as.post('/computers', small)).status, 503);
    await keepUnfinished(service, account.id);
    assert.deepEqual(
      [(await usage(as)).kept_computers, (await usage(as)).running_or_reserved_ram_mb],
      [1, 512],
    );
    assertRefused(await as.post('/computers', small), 402);
  });

  test('Part 2 AccountQuota 5: what was refused or deleted is given back', async () => {
    await service.operator.setPlan('solo', { max_computers: 1 });
    const { as } = await service.account('solo');
    service.host.engine.faults.put('create', 'before');
    assert.equal((await as.post('/computers', small)).status, 503);
    assert.equal((await usage(as)).kept_computers, 0);
    const { id } = await made(as);
    assertRefused(await as.post('/computers', small), 402);
    await as.delete(`/computers/${id}`);
    assert.deepEqual(Object.values(await usage(as)), [0, 0, 0, 0, 0, 0, 0]);
    await made(as);
  });
});
