import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { acted, computer, made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

suite('listing computers', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const listed = async (as: Client, query = '') => {
    const answer = await as.get(`/computers${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body.map(({ id }: { id: string }) => id);
  };
  const context = { signal: new AbortController().signal };

  test('wire-computers 2, wire-computers 3: live ones, oldest first, as records without credentials', async () => {
    const { as } = await service.account();
    assert.deepEqual(await listed(as), []);
    const [one, two] = [await made(as), await made(as, { start: false })];
    assert.deepEqual(await listed(as), [one.id, two.id]);
    const [first] = (await as.get('/computers')).body;
    const {
      vnc: _,
      url: __,
      events_url: ___,
      terminal_url: ____,
      ...record
    } = await computer(as, one.id);
    assert.deepEqual(first, { ...record, state: 'live' });
    const stranger = await service.account();
    assert.deepEqual(await listed(stranger.as), []);
    assertRefused(await stranger.as.get(`/computers/${one.id}`), 404);
    for (const id of ['x', 'vm-000000000000', 'VM-000000000000', '%20']) {
      assertRefused(await as.get(`/computers/${id}`), 404);
    }
  });

  test('wire-computers 3: a state is asked for by its word; deleted and lost only so', async () => {
    const { as } = await service.account();
    const [kept, ended, gone] = [await made(as), await made(as), await made(as, { start: false })];
    await as.delete(`/computers/${ended.id}`);
    await service.host.engine.delete(context, await service.host.instanceOf(gone.id));
    await until('its host no longer having it is noticed', async () =>
      (await listed(as)).includes(gone.id) ? undefined : true,
    );
    assert.deepEqual(await listed(as), [kept.id]);
    assert.deepEqual(await listed(as, '?state=live'), [kept.id]);
    assert.deepEqual(await listed(as, '?state=deleting'), []);
    assert.deepEqual(await listed(as, '?state=unreachable'), []);
    const rows = {
      deleted: { id: ended.id, time: 'deleted_at' },
      lost: { id: gone.id, time: 'lost_at' },
    };
    for (const [state, { id, time }] of Object.entries(rows)) {
      const [row, ...others] = (await as.get(`/computers?state=${state}`)).body;
      assert.deepEqual(others, []);
      assert.deepEqual([row.id, row.state], [id, state]);
      assert.match(row[time], /Z$/);
      for (const absent of ['status', 'unreachable', 'resolution', 'running_ram_mb']) {
        assert.equal(row[absent], undefined, absent);
      }
      assertRefused(await as.get(`/computers/${id}`), 404);
    }
  });

  test('wire-computers 3, wire-computers 5: one whose removal failed is deleting, half-removed, and deleted again', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    service.host.engine.faults.put('delete', 'half');
    assert.equal((await as.delete(`/computers/${id}`)).status, 503);
    const [row] = (await as.get('/computers?state=deleting')).body;
    assert.deepEqual([row.id, row.state, row.status], [id, 'deleting', 'half-removed']);
    assert.deepEqual(await listed(as), [id]);
    assert.equal((await computer(as, id)).status, 'half-removed');
    assert.equal((await as.delete(`/computers/${id}`)).status, 200);
    assert.deepEqual([await listed(as), await listed(as, '?state=deleted')], [[], [id]]);
    assert.ok(!(await service.host.instances()).has(id));
  });

  test('wire-computers 3: a word or value it does not know is 400, another parameter is not read', async () => {
    const { as } = await service.account();
    const queries = [
      ['state=gone', 'state=', 'state=Live', 'state=live&state=live', 'state=void'],
      [
        'workspace_id=',
        'workspace_id=%20',
        'workspace_id=%20unassigned',
        'workspace_id=unassigned%20',
      ],
      ['workspace_id=unassigned&workspace_id=unassigned', 'allow_partial=1&allow_partial=1'],
    ].flat();
    for (const query of queries) {
      const answer = await as.get(`/computers?${query}`);
      assertRefused(answer, 400);
      assert.match(answer.body.error, new RegExp(query.split('=')[0] as string));
    }
    assert.deepEqual(await listed(as, '?page=2'), []);
  });

  test('wire-computers 3, Part 5 2: by workspace, or those in none, and never beyond the key’s own', async () => {
    const { as, account } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const away = (await as.post('/workspaces', { name: 'away' })).body.id;
    const confined = (await service.member(account.id, 'viewer', { workspace: home })).as;
    const inHome = (await made(as, { workspace_id: home, start: false })).id;
    const inNone = (await made(as, { start: false })).id;
    const ended = (await made(as, { workspace_id: home, start: false })).id;
    await as.delete(`/computers/${ended}`);
    assert.deepEqual(await listed(as, `?workspace_id=${home}`), [inHome]);
    assert.deepEqual(await listed(as, `?workspace_id=${home}&state=deleted`), [ended]);
    assert.deepEqual(await listed(as, `?workspace_id=${away}`), []);
    assert.deepEqual(await listed(as, '?workspace_id=unassigned'), [inNone]);
    assert.deepEqual(await listed(as, '?workspace_id=unassigned&state=deleted'), []);
    assert.deepEqual(await listed(confined), [inHome]);
    assert.deepEqual(await listed(confined, `?workspace_id=${home}`), [inHome]);
    assert.deepEqual(await listed(confined, '?state=deleted'), [ended]);
    for (const workspace of [away, 'unassigned', 'wsp-000000000000', 'x']) {
      assertRefused(await confined.get(`/computers?workspace_id=${workspace}`), 404);
    }
    assertRefused(await as.get('/computers?workspace_id=wsp-000000000000'), 404);
    assertRefused(await confined.get(`/computers/${inNone}`), 404);
  });

  test('Part 1 Listings, wire-computers 3: a host that is away makes it 503, or short and marked when that is accepted', async () => {
    const { as, account } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const confined = (await service.member(account.id, 'viewer', { workspace: home })).as;
    const { id } = await made(as, { name: 'far', workspace_id: home });
    await as.patch(`/computers/${id}`, { idle_suspend_min: 90 });
    const other = await made(as, { start: false });
    const ended = await made(as, { start: false });
    await as.delete(`/computers/${ended.id}`);
    const whole = await as.get('/computers?allow_partial=1');
    assert.equal(whole.headers['x-gc-incomplete'], undefined);

    await service.host.cable.cut();
    for (const query of ['', '?allow_partial=0', '?allow_partial=true', '?state=unreachable']) {
      assertRefused(await as.get(`/computers${query}`), 503);
    }
    assertRefused(await as.get(`/computers/${id}`), 503);
    const short = await as.get('/computers?allow_partial=1');
    assert.equal(short.headers['x-gc-incomplete'], '1');
    assert.deepEqual(short.body[0], {
      id,
      name: 'far',
      os: 'linux',
      template: 'base',
      cpu: 1,
      ram_mb: 512,
      disk_gb: 10,
      workspace_id: home,
      created_at: short.body[0].created_at,
      state: 'unreachable',
      unreachable: true,
    });
    assert.deepEqual(await listed(as, '?allow_partial=1&state=unreachable'), [id, other.id]);
    assert.deepEqual(await listed(confined, '?allow_partial=1'), [id]);
    const live = await as.get('/computers?allow_partial=1&state=live');
    assert.deepEqual([live.body, live.headers['x-gc-incomplete']], [[], '1']);
    assert.deepEqual(await listed(as, '?state=deleted'), [ended.id], 'needs no host');
    assert.equal((await as.get('/account')).body.usage.kept_computers, 2);
    await service.host.cable.mend();
    assert.equal((await as.get('/computers')).body[0].idle_suspend_min, 90);
    await acted(as, id, 'stop');
  });
});
