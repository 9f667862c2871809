import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { acted, computer, made, operation } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('changing a computer', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const fields: Record<string, unknown[]> = {
    name: ['', ' \n ', '\u0000', 7, null, 'lone \udc00'],
    cpu: [0, 1.5, '2', null, 257],
    ram_mb: [511, '1024', null, 1_048_577],
    disk_gb: [0, 10.5, '20', null, 65_537],
    idle_suspend_min: [-1, 10_081, 1.5, '30', {}],
    browser_proxy: ['http://a:1', {}, { server: 'a:1' }, { server: 'http://a:1', bypass: 'a' }],
    egress_proxy: [[], { server: 'socks4://a:1' }, { server: 'http://a:1', bypass: [] }],
    resolution: ['640x480'],
    start: [true],
    unknown: [1],
  };

  test('wire-computers 6, Part 7: a field it cannot take is 400 with a sentence that names it, and changes nothing', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const untouched = await computer(as, id);
    for (const [field, values] of Object.entries(fields)) {
      for (const value of values) {
        const answer = await as.patch(`/computers/${id}`, { [field]: value });
        assertRefused(answer, 400);
        assert.match(answer.body.error, new RegExp(`\\b${field}\\b`), JSON.stringify(value));
      }
    }
    const mixed = [
      {},
      { name: 'a', cpu: 2 },
      { name: 'a', idle_suspend_min: 5 },
      { ram_mb: 1024, idle_suspend_min: null },
      { name: 'a', disk_gb: 20, idle_suspend_min: 0 },
      { browser_proxy: null, egress_proxy: null },
      { name: 'a', egress_proxy: null },
      { browser_proxy: { server: 'http://a:1' }, cpu: 2 },
    ];
    for (const json of mixed) assertRefused(await as.patch(`/computers/${id}`, json), 400);
    assert.deepEqual(await computer(as, id), untouched);
    assert.equal((await as.get('/operations')).body.operations.length, 1);
  });

  test('wire-computers 6: a rename is trimmed and cut, in any status, and records no operation', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    const { body } = await as.patch(`/computers/${id}`, { name: ` ${'n'.repeat(70)}\u0007` });
    assert.deepEqual([body.name, body.operation_id], ['n'.repeat(64), undefined]);
    assert.equal(body.running_ram_mb, undefined, 'unknown on this answer');
    assert.equal(typeof body.vnc.token, 'string');
    await acted(as, id, 'suspend');
    assert.equal((await as.patch(`/computers/${id}`, { name: 'b' })).body.name, 'b');
    assert.equal((await computer(as, id)).name, 'b');
    const kinds = (await as.get('/operations')).body.operations.map(
      ({ kind }: { kind: string }) => kind,
    );
    assert.deepEqual(kinds, ['suspend', 'create']);
  });

  test('wire-computers 6: the disk only grows; processors and memory change both ways', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const shape = async () => {
      const { cpu, ram_mb, disk_gb } = await computer(as, id);
      return [cpu, ram_mb, disk_gb];
    };
    const grown = await as.patch(`/computers/${id}`, { cpu: 4, ram_mb: 4096, disk_gb: 20 });
    assert.equal(grown.status, 200, grown.text);
    const { kind, state, computer_id } = await operation(as, grown.body.operation_id);
    assert.deepEqual([kind, state, computer_id], ['resize', 'succeeded', id]);
    assert.deepEqual(await shape(), [4, 4096, 20]);
    await as.patch(`/computers/${id}`, { cpu: 2 });
    await as.patch(`/computers/${id}`, { ram_mb: 1024 });
    assert.deepEqual(await shape(), [2, 1024, 20]);
    const shrunk = await as.patch(`/computers/${id}`, { disk_gb: 19, cpu: 8 });
    assertRefused(shrunk, 400);
    assert.match(shrunk.body.error, /20/);
    assert.deepEqual(await shape(), [2, 1024, 20]);
    assert.equal((await as.patch(`/computers/${id}`, { disk_gb: 20 })).status, 200);
    const instance = await service.host.instanceOf(id);
    const context = { signal: new AbortController().signal };
    const { shape: engines } = (await service.host.engine.get(context, instance)) ?? {};
    assert.deepEqual(engines, { cpu: 2, ramMb: 1024, diskGb: 20 });
  });

  test('wire-computers 6, Part 7: a running one is 409 running; a suspended one loses its session', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    assertRefused(await as.patch(`/computers/${id}`, { cpu: 2 }), 409, 'running');
    await acted(as, id, 'suspend');
    assert.equal((await as.patch(`/computers/${id}`, { cpu: 2 })).status, 200);
    const { status, suspended, cpu } = await computer(as, id);
    assert.deepEqual([status, suspended, cpu], ['stopped', undefined, 2]);
  });

  test('Part 7 Conflicts 1: past what its host can run, the answer says whether another could', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const run = (text: string, values: unknown[] = []) => service.database.run(sql(text), values);
    const { ram_mb, disk_gb } = service.host.row;
    await run('UPDATE hosts SET ram_mb = 2048, disk_gb = 40');
    for (const wish of [{ ram_mb: 4096 }, { disk_gb: 60 }]) {
      const move = { required: true, possible: false };
      assertRefused(await as.patch(`/computers/${id}`, wish), 409, undefined, { move });
    }
    const roomy =
      "INSERT INTO hosts (id, address, cpu, ram_mb, disk_gb) VALUES ('roomy', $1, 1, $2, $3)";
    // Nobody listens there; its token is the same, so that it can be asked.
    await run(roomy, [
      service.host.cable.address.replace('host.sock', 'none.sock'),
      ram_mb,
      disk_gb,
    ]);
    const move = { required: true, possible: true };
    assertRefused(await as.patch(`/computers/${id}`, { ram_mb: 4096 }), 409, undefined, { move });
    await run("DELETE FROM hosts WHERE id = 'roomy'");
    await run('UPDATE hosts SET ram_mb = $1, disk_gb = $2', [ram_mb, disk_gb]);
    assert.equal((await computer(as, id)).ram_mb, 512);
    assert.equal((await as.patch(`/computers/${id}`, { ram_mb: 4096 })).status, 200);
  });

  test('wire-computers 9: a resize that its host could not do is a failed operation, and the size stays', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    service.host.engine.faults.put('change', 'before');
    const answer = await as.patch(`/computers/${id}`, { cpu: 2 });
    assertRefused(answer, 503, undefined, { operation_id: answer.body.operation_id });
    assert.equal((await operation(as, answer.body.operation_id)).state, 'failed');
    assert.equal((await computer(as, id)).cpu, 1);
  });

  test('wire-computers 6: an idle time from 0 to 10080 minutes, or null for the host’s own', async () => {
    const { as } = await service.account();
    const { id, idle_suspend_min: at_first } = await made(as);
    assert.equal(at_first, undefined);
    for (const minutes of [1, 10_080, 0]) {
      const { body } = await as.patch(`/computers/${id}`, { idle_suspend_min: minutes });
      assert.equal(body.idle_suspend_min, minutes);
      assert.equal((await computer(as, id)).idle_suspend_min, minutes);
    }
    await as.patch(`/computers/${id}`, { idle_suspend_min: null });
    assert.equal((await computer(as, id)).idle_suspend_min, undefined);
  });

  test('wire-computers 6: a proxy, which no host takes, is 409 unsupported; removing one changes nothing', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const untouched = await computer(as, id);
    for (const field of ['browser_proxy', 'egress_proxy']) {
      const proxy = { server: 'http://proxy.example.com:3128' };
      const refused = await as.patch(`/computers/${id}`, { [field]: proxy });
      assertRefused(refused, 409, 'unsupported');
      assert.equal((await as.patch(`/computers/${id}`, { [field]: null })).status, 200);
    }
    assert.deepEqual(await computer(as, id), untouched);
  });

  test('wire-computers 6, Part 2 AccountQuota 6: plans cap how many never suspend: Solo none, Studio one, Swarm four', async () => {
    for (const [plan, most] of Object.entries({ solo: 0, studio: 1, swarm: 4 })) {
      const { as } = await service.account(plan);
      const never = (id: string) => as.patch(`/computers/${id}`, { idle_suspend_min: 0 });
      const ids: string[] = [];
      for (let n = 0; n <= most; n += 1) ids.push((await made(as, { start: false })).id);
      const answers = await Promise.all(ids.map(never));
      assert.equal(answers.filter(({ status }) => status === 200).length, most, plan);
      const refused = answers.find(({ status }) => status !== 200);
      assert.ok(refused);
      assertRefused(refused, 402);
      assert.match(refused.body.error, new RegExp(`\\b${most}\\b.*idle`));
      const set = ids.filter((_, n) => answers[n]?.status === 200);
      for (const id of set) assert.equal((await never(id)).status, 200, 'it may keep what it has');
    }
  });
});
