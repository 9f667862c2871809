// Computers on the simulated engine: what the control plane itself answers for.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';

suite('computers', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const create = async (as: Client, wish: object = {}) => (await as.post('/computers', wish)).body;
  const status = async (as: Client, id: string) => (await as.get(`/computers/${id}`)).body.status;
  const post = (as: Client, path: string) => as.send('POST', path);

  test('a computer is created running, with its operation and its addresses', async () => {
    const { as, account } = await service.account();
    const { body } = await as.post('/computers', {
      name: ' mine ',
      cpu: 1,
      ram_mb: 1024,
      disk_gb: 1,
    });
    assert.match(body.id, /^vm-[0-9a-f]{12}$/);
    assert.deepEqual(
      [body.name, body.status, body.cpu, body.ram_mb, body.disk_gb, body.resolution],
      ['mine', 'running', 1, 1024, 10, '1280x800x24'],
      'the template’s disk is a floor',
    );
    assert.equal(body.vnc.url, body.url);
    const operation = (await as.get(`/operations/${body.operation_id}`)).body;
    assert.deepEqual(
      [operation.kind, operation.state, operation.computer_id],
      ['create', 'succeeded', body.id],
    );
    const viewer = await service.member(account.id, 'viewer');
    const seen = (await viewer.as.get(`/computers/${body.id}`)).body;
    assert.deepEqual(
      [seen.url, seen.vnc.token, typeof seen.vnc.view_token],
      [undefined, undefined, 'string'],
    );
    assert.equal(
      (await as.get('/computers')).body[0].vnc,
      undefined,
      'no listing carries credentials',
    );
  });

  test('the lifecycle: suspend, resume, stop, resize, restart, clone, delete', async () => {
    const { as } = await service.account();
    const { id, vnc } = await create(as, { size: 'small' });
    assertRefused(await as.patch(`/computers/${id}`, { cpu: 2 }), 409, 'running');
    assertRefused(await as.post(`/computers/${id}/clone`, {}), 409, 'running');
    assert.equal((await post(as, `/computers/${id}/suspend`)).body.ok, true);
    const suspended = (await as.get(`/computers/${id}`)).body;
    assert.deepEqual(
      [suspended.status, suspended.running_ram_mb, suspended.vnc],
      ['suspended', 0, undefined],
    );
    assert.match(suspended.suspended.at, /Z$/);
    assertRefused(await post(as, `/computers/${id}/suspend`), 409, 'unavailable');
    assertRefused(await post(as, `/computers/${id}/restart`), 409, 'unavailable');
    await post(as, `/computers/${id}/start`);
    const resumed = (await as.get(`/computers/${id}`)).body;
    assert.equal(resumed.vnc.token, vnc.token, 'stop and start keep the credentials');
    await post(as, `/computers/${id}/restart`);
    assert.notEqual(
      (await as.get(`/computers/${id}`)).body.vnc.token,
      vnc.token,
      'restart rotates them',
    );
    await post(as, `/computers/${id}/stop?force=true`);
    assert.equal((await post(as, `/computers/${id}/start?resume_only=true`)).status, 200);
    assert.equal(await status(as, id), 'stopped');
    const resized = await as.patch(`/computers/${id}`, { cpu: 2, disk_gb: 12 });
    assert.deepEqual([resized.body.cpu, resized.body.disk_gb, resized.body.ram_mb], [2, 12, 1024]);
    assertRefused(await as.patch(`/computers/${id}`, { disk_gb: 11 }), 400);
    const clone = await as.post(`/computers/${id}/clone`, { name: 'copy' });
    assert.equal(clone.body.status, 'building');
    for (;;) {
      const { state } = (await as.get(`/operations/${clone.body.operation_id}`)).body;
      if (state === 'succeeded') break;
      assert.equal(state, 'running');
    }
    assert.equal(await status(as, clone.body.id), 'stopped');
    assert.equal((await as.delete(`/computers/${id}`)).body.ok, true);
    assertRefused(await as.get(`/computers/${id}`), 404);
    const ended = (await as.get('/computers?state=deleted')).body;
    assert.deepEqual(
      ended.map((row: { id: string }) => row.id),
      [id],
    );
  });

  test('an idempotency key makes a call repeatable, for its own request only', async () => {
    const { as } = await service.account();
    const send = (key: string, json: unknown) =>
      as.send('POST', '/computers', { json, headers: { 'idempotency-key': key } });
    const first = await send('k-1', { size: 'small' });
    const again = await send('k-1', { size: 'small' });
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.deepEqual(
      [again.status, again.body.id, again.body.vnc],
      [201, first.body.id, undefined],
    );
    const reused = await send('k-1', { size: 'medium' });
    assert.deepEqual([reused.status, reused.body.code], [422, 'idempotency_key_reused']);
    assertRefused(await send('with space', {}), 400);
    assertRefused(await send('k-2', { size: 'none such' }), 400);
    assert.equal(
      (await send('k-2', { size: 'small', start: false })).status,
      201,
      'a refused call releases its key',
    );
    const found = (await as.get('/operations?idempotency_key=k-1')).body.operations;
    assert.deepEqual([found.length, found[0].computer_id], [1, first.body.id]);
    assert.equal((await as.get('/computers')).body.length, 2);
  });

  test('Part 2 AccountQuota 5: a burst of creates never exceeds a ceiling, and the account counts the same', async () => {
    const { as } = await service.account('solo');
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => as.post('/computers', { size: 'small' })),
    );
    assert.equal(answers.filter((answer) => answer.status === 201).length, 5);
    for (const answer of answers.filter(({ status: code }) => code !== 201)) {
      assertRefused(answer, 402);
      assert.match(answer.body.error, /5/);
    }
    const { usage } = (await as.get('/account')).body;
    assert.deepEqual([usage.kept_computers, usage.running_or_reserved_ram_mb], [5, 5 * 1024]);
  });

  test('bad input is a clear 400 and makes nothing', async () => {
    const { as } = await service.account();
    const bad: object[] = [
      { name: '' },
      { name: ' \n ' },
      { name: 7 },
      { cpu: 0 },
      { cpu: 1.5 },
      { cpu: '2' },
      { ram_mb: 511 },
      { disk_gb: 0 },
      { resolution: '640x479' },
      { resolution: '641x480' },
      { resolution: '4000x480' },
      { resolution: '640x480x8' },
      { start: 'yes' },
      { size: 'small', cpu: 1 },
      { unknown: 1 },
      { size: 1 },
    ];
    for (const wish of bad) assertRefused(await as.post('/computers', wish), 400);
    assertRefused(await as.post('/computers', { workspace_id: 'wsp-000000000000' }), 404);
    assertRefused(await as.post('/computers', { template: 'nobody/nothing@1.0.0' }), 404);
    assertRefused(await as.post('/computers', { cpu: 17 }), 402);
    for (const query of [
      'state=gone',
      'workspace_id=',
      'workspace_id=%20x',
      'state=live&state=lost',
    ]) {
      assertRefused(await as.get(`/computers?${query}`), 400);
    }
    for (const query of [
      'limit=0',
      'limit=101',
      'unknown=1',
      'limit=1&limit=2',
      'computer_id=x',
      'cursor=x',
    ]) {
      assertRefused(await as.get(`/operations?${query}`), 400);
    }
    assert.deepEqual((await as.get('/computers')).body, []);
    assert.deepEqual((await as.get('/operations')).body, { operations: [], next_cursor: null });
  });

  test('Part 4 Operations: pages are newest first and lead on by their cursor', async () => {
    const { as } = await service.account();
    const { id } = await create(as, { size: 'small', start: false });
    for (let n = 0; n < 3; n += 1) {
      await post(as, `/computers/${id}/start`);
      await post(as, `/computers/${id}/stop`);
    }
    const kinds: string[] = [];
    let cursor = '';
    do {
      const page = (await as.get(`/operations?limit=3${cursor}`)).body;
      kinds.push(...page.operations.map(({ kind }: { kind: string }) => kind));
      cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`;
    } while (cursor !== '');
    assert.deepEqual(kinds, ['stop', 'start', 'stop', 'start', 'stop', 'start', 'create']);
    assertRefused(await as.get('/operations/op_000000000000000000000000'), 404);
  });

  test('Part 4 Workspaces 4, Part 5 2: a computer changes its workspace when stopped, with its credentials', async () => {
    const { as, account } = await service.account();
    const [one, two] = [
      (await as.post('/workspaces', { name: 'one' })).body.id,
      (await as.post('/workspaces', { name: 'two' })).body.id,
    ];
    const confined = await service.member(account.id, 'member', { workspace: one });
    const { id, workspace_id, vnc } = await create(confined.as, { size: 'small' });
    assert.equal(workspace_id, one);
    assertRefused(
      await as.put(`/computers/${id}/workspace`, { workspace_id: two }),
      409,
      'unsupported',
    );
    assertRefused(await as.delete(`/workspaces/${one}`), 409, 'unsupported');
    await post(as, `/computers/${id}/stop`);
    assertRefused(await confined.as.put(`/computers/${id}/workspace`, { workspace_id: two }), 403);
    assert.equal(
      (await as.put(`/computers/${id}/workspace`, { workspace_id: two })).body.workspace_id,
      two,
    );
    assertRefused(await confined.as.get(`/computers/${id}`), 404);
    assert.deepEqual((await confined.as.get('/operations')).body.operations, []);
    await post(as, `/computers/${id}/start`);
    assert.notEqual((await as.get(`/computers/${id}`)).body.vnc.token, vnc.token);
    assert.equal((await as.delete(`/workspaces/${one}`)).status, 200);
    assert.equal((await as.put(`/computers/${id}/workspace`, { workspace_id: null })).status, 409);
  });

  test('a host that is away: single calls 503, listings 503 unless a short answer will do', async () => {
    const { as } = await service.account();
    const { id } = await create(as, { size: 'small' });
    await service.host.cable.cut();
    assertRefused(await as.get(`/computers/${id}`), 503);
    assertRefused(await as.get('/computers'), 503);
    assertRefused(await post(as, `/computers/${id}/stop`), 503);
    const short = await as.get('/computers?allow_partial=1');
    assert.equal(short.headers['x-gc-incomplete'], '1');
    assert.deepEqual(
      [short.body[0].id, short.body[0].state, short.body[0].status],
      [id, 'unreachable', undefined],
    );
    assert.equal((await as.get('/account')).status, 200);
  });
});
