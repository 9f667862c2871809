import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { quotaOf } from '../../packages/server/app/account.ts';
import type { Observation } from '../../packages/server/app/inventory.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import { startService, type TestService } from '../support/service.ts';

suite('the account', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  test('Part 4 Account, Part 2 AccountQuota 2: a new account has real zeros and the plan’s limits', async () => {
    const { as } = await service.account('solo');
    const [solo] = (await service.operator.listPlans()).filter(({ id }) => id === 'solo');
    const { body } = await as.get('/account');
    assert.equal(body.scope, 'account');
    assert.equal(body.advisory, true);
    assert.match(body.observed_at, /Z$/);
    assert.deepEqual(body.plan, { id: 'solo', label: 'Solo' });
    assert.equal(body.limits.max_computers, solo?.max_computers);
    assert.equal(body.per_computer.max_vcpu, solo?.max_vcpu);
    assert.deepEqual(body.capabilities, { windows: false });
    assert.deepEqual(body.complete, { computers: true, snapshots: true });
    assert.deepEqual(new Set(Object.values(body.usage)), new Set([0]));
    assert.equal(body.remaining.kept_computers, solo?.max_computers);
    assert.equal(body.remaining.snapshot_storage_bytes, solo?.snapshot_storage_bytes);
  });

  test('Part 2 AccountQuota 2: an account without a plan has zero ceilings', async () => {
    const { as } = await service.account('none');
    const { body } = await as.get('/account');
    assert.deepEqual(body.plan, { id: 'none', label: 'No plan' });
    assert.deepEqual(new Set(Object.values(body.limits)), new Set([0]));
    assert.deepEqual(new Set(Object.values(body.remaining)), new Set([0]));
  });

  test('Part 4 Account: a confined key reads the whole account’s sums without any identity', async () => {
    const { as, account } = await service.account();
    const { id } = (await as.post('/workspaces', { name: 'w' })).body;
    const confined = await service.member(account.id, 'viewer', { workspace: id });
    const whole = (await as.get('/account')).body;
    const answer = await confined.as.get('/account');
    assert.deepEqual({ ...answer.body, observed_at: '' }, { ...whole, observed_at: '' });
    assert.doesNotMatch(answer.text, /acc-|usr-|wsp-|key-|@/);
  });

  test('Part 4 Account: readable on a suspended account, for its people; a 403 is about the person', async () => {
    const { as, account } = await service.account();
    const member = await service.member(account.id, 'member');
    await service.operator.setAccount(account.id, { suspended: true });
    assert.equal((await as.get('/account')).status, 200);
    assert.equal((await as.head('/account')).status, 200);
    assertRefused(await as.get('/workspaces'), 403, 'revoked');
    await service.operator.setUser(member.email, { suspended: true });
    assertRefused(await member.as.get('/account'), 403, 'revoked');
  });

  test('Part 4 Account, Part 8 Rate: it costs 10', async () => {
    const { as } = await service.account('none');
    const first = assertMetered(await as.get('/account'));
    assert.equal(first.limit, 600);
    assert.equal(first.remaining, 590);
  });

  test('a plan’s figures are the operator’s to change, and are obeyed at once', async () => {
    const { as } = await service.account('studio');
    await service.operator.setPlan('studio', { max_computers: 7, rate_units: 5_000 });
    const { body } = await as.get('/account');
    assert.equal(body.limits.max_computers, 7);
    let limit = 0;
    while (limit !== 2_500) limit = assertMetered(await as.get('/whoami')).limit;
  });
});

suite('quota arithmetic', () => {
  const plan = {
    id: 'p',
    label: 'P',
    rate_units: 1,
    max_computers: 3,
    vcpu_pool: 8,
    ram_pool_mb: 8_192,
    disk_pool_gb: 100,
    snapshot_storage_bytes: 1_000,
    max_vcpu: 4,
    max_ram_mb: 4_096,
    max_disk_gb: 50,
    never_idle: 0,
    max_webhooks: 10,
    builds_per_day: 10,
  };
  const on = { vcpu: 2, ramMb: 2_048, diskGb: 20, active: true };
  const off = { ...on, active: false };
  const quota = (observation: Observation, limits = plan) =>
    quotaOf(limits, observation, new Date(0));

  test('Part 2 AccountQuota 1: an incomplete group is null in usage and remaining, the other stays', () => {
    const blind = quota({ computers: undefined, snapshotBytes: 400 });
    assert.deepEqual(blind.complete, { computers: false, snapshots: true });
    const { snapshot_storage_bytes: used, ...usage } = blind.usage;
    const { snapshot_storage_bytes: left, ...remaining } = blind.remaining;
    assert.deepEqual([used, left], [400, 600]);
    assert.deepEqual(
      new Set([...Object.values(usage), ...Object.values(remaining)]),
      new Set([null]),
    );
    assert.equal(blind.limits.max_computers, 3);

    const other = quota({ computers: [on, off], snapshotBytes: undefined });
    assert.deepEqual(other.complete, { computers: true, snapshots: false });
    assert.equal(other.usage.snapshot_storage_bytes, null);
    assert.equal(other.remaining.snapshot_storage_bytes, null);
    assert.equal(other.usage.kept_computers, 2);
  });

  test('Part 2 AccountQuota 2: zero ceilings do not erase what is kept', () => {
    const none = { ...plan, max_computers: 0, vcpu_pool: 0, ram_pool_mb: 0, disk_pool_gb: 0 };
    const { usage, remaining } = quota({ computers: [on], snapshotBytes: 5 }, none);
    assert.equal(usage.kept_computers, 1);
    assert.equal(remaining.kept_computers, 0);
  });

  test('Part 2 AccountQuota 3, wire-account 7: remaining is clamped, overage stays visible', () => {
    const { usage, remaining } = quota({
      computers: [on, on, off, off, off],
      snapshotBytes: 2_000,
    });
    assert.deepEqual(usage, {
      kept_computers: 5,
      configured_vcpu: 10,
      configured_disk_gb: 100,
      running_or_reserved_computers: 2,
      running_or_reserved_vcpu: 4,
      running_or_reserved_ram_mb: 4_096,
      snapshot_storage_bytes: 2_000,
    });
    assert.deepEqual(remaining, {
      kept_computers: 0,
      configured_vcpu: 0,
      configured_disk_gb: 0,
      running_or_reserved_ram_mb: 4_096,
      snapshot_storage_bytes: 0,
    });
  });
});
