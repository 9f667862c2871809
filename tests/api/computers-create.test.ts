import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { publish } from '../support/builds.ts';
import type { Answer } from '../support/client.ts';
import { acted, computer, made, operation, small, traces } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { beginSlowly } from '../support/slow-request.ts';

suite('creating a computer', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  /** Whatever it answers, it leaves neither a row nor an instance. */
  async function makesNothing(plan: string, work: (account: Account) => Promise<void>) {
    const account = await service.account(plan);
    const untouched = await traces(service, account.account.id);
    await work(account);
    assert.deepEqual(await traces(service, account.account.id), untouched);
  }
  type Account = Awaited<ReturnType<TestService['account']>>;

  const fields: Record<string, unknown[]> = {
    name: ['', ' \t ', '\u0000\u001f\u007f\u0085', 7, null, ['a'], 'lone \ud800'],
    size: [7, null, {}, 'none-such', ''],
    template: [7, null, []],
    cpu: [0, -1, 1.5, '2', null, 257, 1e300],
    ram_mb: [511, 0, 1024.5, '1024', null, 1_048_577],
    disk_gb: [0, -1, 10.5, '10', null, 65_537],
    start: ['true', 1, null],
    workspace_id: [7, null, []],
    browser_proxy: ['http://a:1', [], {}, { server: 'http://me:pw@a:1' }, { server: 'ftp://a:1' }],
    egress_proxy: [null, {}, { server: 'http://a' }, { server: 'http://a:1', bypass: [] }],
    unknown: ['x'],
    Name: ['x'],
    state: ['running'],
    idle_suspend_min: [0],
  };

  test('wire-computers 4, Part 7: a field it cannot take is 400 with a sentence that names it, and makes nothing', () =>
    makesNothing('swarm', async ({ as }) => {
      for (const [field, values] of Object.entries(fields)) {
        for (const value of values) {
          const answer = await as.post('/computers', { [field]: value });
          assertRefused(answer, 400);
          assert.match(answer.body.error, new RegExp(`\\b${field}\\b`), JSON.stringify(value));
        }
      }
      for (const json of [null, [], 'x', 7, true]) {
        assertRefused(await as.send('POST', '/computers', { json }), 400);
      }
      for (const raw of [' ', '{', '{"name":"a",}']) {
        assertRefused(await as.send('POST', '/computers', { raw }), 400);
      }
      assertRefused(await as.send('POST', '/computers', { raw: ' '.repeat(2 ** 20 + 1) }), 413);
    }));

  test('wire-computers 4: a proxy, which no host takes, is 409 unsupported and makes nothing', () =>
    makesNothing('swarm', async ({ as }) => {
      for (const field of ['browser_proxy', 'egress_proxy']) {
        const wish = { ...small, [field]: { server: 'http://proxy.example.com:3128' } };
        assertRefused(await as.post('/computers', wish), 409, 'unsupported');
      }
    }));

  test('wire-computers 4, wire-account 1: a template’s proxy is inherited unless it is declined', async () => {
    const { account, as } = await service.account();
    const document = (name: string, from: string) => ({
      apiVersion: 'cubicle/v1',
      kind: 'Template',
      metadata: { namespace: account.id, name, version: '1.0.0' },
      spec: { os: 'linux', from },
    });
    const proxied = document('proxied', 'system/base');
    const browser_proxy = { server: 'socks5://proxy.example.com:1080' };
    await publish(as, { ...proxied, spec: { ...proxied.spec, browser_proxy } });
    await publish(as, document('child', `${account.id}/proxied`));
    const wish = { template: `${account.id}/child`, start: false };
    assertRefused(await as.post('/computers', wish), 409, 'unsupported');
    const declined = await as.post('/computers', { ...wish, browser_proxy: null });
    assert.equal(declined.status, 201, declined.text);
  });

  test('wire-computers 4: a size goes with no field of a shape', () =>
    makesNothing('swarm', async ({ as }) => {
      for (const field of [{ template: 'base' }, { cpu: 1 }, { ram_mb: 1024 }, { disk_gb: 10 }]) {
        const answer = await as.post('/computers', { size: 'small', ...field });
        assertRefused(answer, 400);
        assert.match(answer.body.error, /size/);
      }
    }));

  test('wire-computers 1, wire-computers 4: every size makes the computer that GET /sizes tells', async () => {
    const { as } = await service.account();
    for (const size of (await as.get('/sizes')).body) {
      assert.deepEqual([size.allowed, typeof size.label], [true, 'string']);
      const body = await whole(as.post('/computers', { size: size.id, start: false }));
      for (const field of ['cpu', 'ram_mb', 'disk_gb', 'template']) {
        assert.equal(body[field], size[field], field);
      }
    }
    const solo = await service.account('solo');
    const [largest] = (await solo.as.get('/sizes')).body.toReversed();
    assert.deepEqual([largest.allowed, largest.cheapest_plan], [false, 'studio']);
    assertRefused(await solo.as.post('/computers', { size: largest.id }), 402);
    const none = await service.account('none');
    for (const size of (await none.as.get('/sizes')).body) assert.equal(size.allowed, false);
  });

  test('wire-computers 4: a name is stripped of controls, trimmed and cut to 64 characters', async () => {
    const { as } = await service.account();
    const names = {
      ' mine\u0000 \u0007': 'mine',
      'two\nlines': 'twolines',
      ['x'.repeat(65)]: 'x'.repeat(64),
      ['🧊'.repeat(65)]: '🧊'.repeat(64),
      [` ${'y'.repeat(64)} `]: 'y'.repeat(64),
      'Ünïcode ✓': 'Ünïcode ✓',
    };
    for (const [name, kept] of Object.entries(names)) {
      const { id, name: answered } = await made(as, { name, start: false });
      assert.deepEqual([answered, (await computer(as, id)).name], [kept, kept]);
    }
    const [one, two] = [await made(as, { start: false }), await made(as, { start: false })];
    assert.ok(one.name.length > 0 && one.name !== two.name, 'the service picks one');
    await made(as, { name: one.name, start: false });
  });

  test('wire-computers 4, Part 4 Templates: short names fall back to the default, references must be right', async () => {
    const { as } = await service.account();
    const [base] = (await as.get('/templates')).body;
    const without = await service.account('none');
    assert.deepEqual((await without.as.get('/templates')).body, [], 'it may launch none');
    for (const template of ['base', 'no-such', 'Base', '', base.ref, base.ref.split('@')[0]]) {
      assert.equal((await made(as, { template, start: false })).template, 'base', template);
    }
    const shaped = await whole(as.post('/computers', { start: false }));
    for (const field of ['cpu', 'ram_mb', 'disk_gb'] as const) {
      assert.equal(shaped[field], base[field], field);
    }
    const untouched = await traces(service, shaped.id);
    for (const template of ['nobody/nothing', `${base.ref}9`, `x/${base.ref}`, '/', 'a/b@c/d']) {
      assertRefused(await as.post('/computers', { template }), 404);
    }
    assert.deepEqual(await traces(service, shaped.id), untouched);
  });

  test('wire-computers 4, Part 2 AccountQuota 6: the template’s disk is a floor, raised and charged raised', async () => {
    const { as } = await service.account();
    assert.equal((await made(as, { disk_gb: 1, start: false })).disk_gb, 10);
    assert.equal((await made(as, { disk_gb: 11, start: false })).disk_gb, 11);
    const { usage } = (await as.get('/account')).body;
    assert.deepEqual([usage.configured_disk_gb, usage.kept_computers], [21, 2]);
  });

  test('wire-computers 4: a resolution is taken from 640x480 to 3840x2160, even, with depth 16, 24 or 32', async () => {
    const { as } = await service.account();
    const taken = {
      '640x480': '640x480x24',
      '3840x2160': '3840x2160x24',
      '642x482x16': '642x482x16',
      '1920x1080x32': '1920x1080x32',
      '640x2160x24': '640x2160x24',
    };
    for (const [resolution, stored] of Object.entries(taken)) {
      const { id } = await made(as, { resolution, start: false });
      assert.equal((await computer(as, id)).resolution, stored);
    }
    assert.equal((await made(as, { start: false })).resolution, '1280x800x24');
    await makesNothing('swarm', async (other) => {
      const refused = [
        ['638x480', '640x478', '3842x2160', '3840x2162', '641x480', '640x481', '639x480'],
        ['640x480x8', '640x480x0', '640x480x', '640x480x24x1', '640x480x024', '640', 'x480'],
        ['0640x480', ' 640x480', '640x480 ', '640X480', '1e3x800', '-640x480', '', '640x480\n'],
        [7, null, [640, 480]],
      ].flat();
      for (const resolution of refused) {
        const answer = await other.as.post('/computers', { resolution });
        assertRefused(answer, 400);
        assert.match(answer.body.error, /resolution/, JSON.stringify(resolution));
      }
    });
  });

  test('wire-computers 4, Part 5 2: it lands in the wished workspace, the key’s own, or none', async () => {
    const { as, account } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const other = (await as.post('/workspaces', { name: 'other' })).body.id;
    const confined = await service.member(account.id, 'member', { workspace: home });
    assert.equal((await made(as, { start: false })).workspace_id, undefined);
    assert.equal((await made(as, { workspace_id: other, start: false })).workspace_id, other);
    assert.equal((await made(confined.as, { start: false })).workspace_id, home);
    assert.equal(
      (await made(confined.as, { workspace_id: home, start: false })).workspace_id,
      home,
    );
    const stranger = await service.account();
    const untouched = await traces(service, account.id);
    const foreign = (await stranger.as.post('/workspaces', { name: 'foreign' })).body.id;
    for (const workspace_id of [foreign, 'wsp-000000000000', 'x', '', ` ${other}`]) {
      assertRefused(await as.post('/computers', { workspace_id }), 404);
    }
    assertRefused(await confined.as.post('/computers', { workspace_id: other }), 404);
    assert.deepEqual(await traces(service, account.id), untouched);
  });

  test('Part 5 3, Part 5 6, Part 5 7: authority lost while it is asked for makes nothing', async () => {
    const { account } = await service.account();
    const { operator } = service;
    const losses: Record<string, (who: { email: string; keyId: string }) => Promise<unknown>> = {
      'a lowered role': ({ email }) => operator.setMember(account.id, email, { role: 'viewer' }),
      'a revoked key': ({ keyId }) => operator.revokeKey(keyId),
      'a removed member': ({ email }) => operator.removeMember(account.id, email),
    };
    const untouched = await traces(service, account.id);
    for (const [name, lose] of Object.entries(losses)) {
      const who = await service.member(account.id, 'member');
      const request = { method: 'POST', json: small } as const;
      const underWay = await beginSlowly(`${service.baseUrl}/computers`, who.raw, request);
      await lose(who);
      const answer = await underWay.finish();
      assertRefused(answer, name === 'a revoked key' ? 401 : 403, 'revoked');
    }
    assert.deepEqual(await traces(service, account.id), untouched);
  });

  test('wire-computers 2, wire-computers 4: one that is not started is stopped, uncharged and without addresses', async () => {
    const { as } = await service.account();
    const body = await made(as, { start: false });
    assert.deepEqual(
      [body.status, body.running_ram_mb, body.vnc, body.url, body.state],
      ['stopped', 0, undefined, undefined, undefined],
    );
    const read = await computer(as, body.id);
    const { operation_id, ...record } = body;
    assert.deepEqual(read, record, 'reads never carry the operation');
    assert.match(operation_id, /^op_[0-9a-f]{24}$/);
    const { usage } = (await as.get('/account')).body;
    assert.deepEqual([usage.kept_computers, usage.running_or_reserved_computers], [1, 0]);
  });

  test('wire-computers 4, Part 3 Operation: one that is built but would not boot is 201 with start_error, and starts later', async () => {
    const { as } = await service.account();
    service.host.engine.faults.put('start', 'before');
    const { computer: stopped, start_error, operation_id, ...rest } = await made(as);
    assert.deepEqual(rest, {});
    assert.doesNotMatch(start_error, /fault/, 'the engine’s words stay on the host');
    assert.deepEqual([stopped.status, stopped.running_ram_mb], ['stopped', undefined]);
    const { kind, state, error } = await operation(as, operation_id);
    assert.deepEqual([kind, state, error.code], ['create', 'failed', 'start_failed']);
    assert.equal((await as.get('/account')).body.usage.running_or_reserved_ram_mb, 0);
    await acted(as, stopped.id, 'start');
    assert.equal((await computer(as, stopped.id)).status, 'running');
  });

  test('wire-computers 4: what its host cannot make is 503 without an operation, and leaves nothing', async () => {
    const { as } = await service.account();
    const nothing = async (answer: Answer) => {
      assertRefused(answer, 503);
      assert.deepEqual((await as.get('/computers?allow_partial=1')).body, []);
      assert.deepEqual((await as.get('/operations')).body.operations, []);
      assert.equal((await as.get('/account')).body.usage.kept_computers, 0);
    };
    const { host } = service;
    const instances = (await host.instances()).size;
    const { faults } = host.engine;
    for (const fault of ['before', 'half', 'after'] as const) {
      faults.put('create', fault);
      await nothing(await as.post('/computers', small));
      assert.equal((await host.instances()).size, instances, fault);
    }
    faults.put('create', 'before', { kind: 'room' });
    const full = await as.post('/computers', small);
    await nothing(full);
    assert.match(full.body.error, /room/);
    await host.cable.cut();
    await nothing(await as.post('/computers', small));
    await host.cable.mend();
    await made(as, { start: false });
  });

  test('wire-computers 4: no host with room is 503, no host at all too', async () => {
    const { as, account } = await service.account();
    const room = (ramMb: number, diskGb: number) =>
      service.database.run(sql('UPDATE hosts SET ram_mb = $1, disk_gb = $2'), [ramMb, diskGb]);
    const untouched = await traces(service, account.id);
    for (const [ramMb, diskGb] of [
      [511, 1_000_000],
      [1_000_000, 9],
    ] as const) {
      await room(ramMb, diskGb);
      const answer = await as.post('/computers', small);
      assertRefused(answer, 503);
      assert.match(answer.body.error, /room/);
    }
    const { ram_mb, disk_gb } = service.host.row;
    await room(ram_mb, disk_gb);
    assert.deepEqual(await traces(service, account.id), untouched);
    const alone = await startService();
    const { as: there } = await alone.account();
    assertRefused(await there.post('/computers', small), 503);
    assert.deepEqual((await there.get('/computers')).body, []);
    await alone.stop();
  });

  async function whole(sent: Promise<Answer>) {
    const answer = await sent;
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  }
});
