import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { acted, clone, computer, finished, made, operation, traces } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('cloning a computer', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  test('wire-computers 5, Part 3 Operation: the copy is building, then stopped, with the size, resolution and workspace of its source', async () => {
    const { as } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const wish = {
      cpu: 2,
      ram_mb: 1024,
      disk_gb: 12,
      resolution: '800x600x16',
      workspace_id: home,
    };
    const source = await made(as, { ...wish, name: 'first' });
    await as.patch(`/computers/${source.id}`, { idle_suspend_min: 77 });
    assertRefused(await as.post(`/computers/${source.id}/clone`, {}), 409, 'running');
    await acted(as, source.id, 'stop');
    const on = await service.host.instanceOf(source.id);
    service.host.engine.writeFile(on, '/home/user/note', 'kept');

    const { operation_id, ...copy } = await clone(as, source.id, { name: ' second ' });
    const { cpu, ram_mb, disk_gb, resolution, workspace_id } = copy;
    assert.deepEqual({ cpu, ram_mb, disk_gb, resolution, workspace_id }, wish);
    assert.deepEqual(
      [copy.name, copy.status, copy.build.source],
      ['second', 'building', source.id],
    );
    assert.deepEqual([copy.running_ram_mb, copy.vnc], [undefined, undefined]);
    assert.notEqual(copy.id, source.id);
    const done = await finished(as, operation_id);
    assert.deepEqual([done.kind, done.state, done.computer_id], ['clone', 'succeeded', copy.id]);
    const now = await computer(as, copy.id);
    assert.deepEqual([now.status, now.build, now.running_ram_mb], ['stopped', undefined, 0]);
    assert.equal(now.idle_suspend_min, undefined);
    const at = await service.host.instanceOf(copy.id);
    assert.equal(service.host.engine.readFile(at, '/home/user/note'), 'kept');
    await acted(as, copy.id, 'start');
    await acted(as, source.id, 'start');
    const tokens = [
      (await computer(as, copy.id)).vnc.token,
      (await computer(as, source.id)).vnc.token,
    ];
    assert.notEqual(tokens[0], tokens[1]);
  });

  test('wire-computers 5: a suspended one is copied and stays suspended; a name is its own or the service’s', async () => {
    const { as } = await service.account();
    const source = await made(as, { name: 'x'.repeat(64) });
    await acted(as, source.id, 'suspend');
    const copy = await clone(as, source.id);
    assert.ok(copy.name.length > 0 && copy.name.length <= 64);
    assert.equal((await finished(as, copy.operation_id)).state, 'succeeded');
    assert.equal((await computer(as, source.id)).status, 'suspended');
    const untouched = await traces(service, copy.id);
    for (const name of ['', ' ', '\u0000', 7, null]) {
      const answer = await as.post(`/computers/${source.id}/clone`, { name });
      assertRefused(answer, 400);
      assert.match(answer.body.error, /name/);
    }
    for (const json of [{ cpu: 2 }, [], null]) {
      assertRefused(await as.send('POST', `/computers/${source.id}/clone`, { json }), 400);
    }
    assert.deepEqual(await traces(service, copy.id), untouched);
  });

  test('wire-computers 4, wire-computers 5: where nothing need be said, no body is needed', async () => {
    const { as } = await service.account();
    const { status, body } = await as.send('POST', '/computers');
    assert.deepEqual([status, body.template, body.status], [201, 'base', 'running']);
    await acted(as, body.id, 'stop');
    const copy = await as.send('POST', `/computers/${body.id}/clone`);
    assert.deepEqual([copy.status, copy.body.name], [201, `${body.name} copy`]);
    assertRefused(await as.send('PATCH', `/computers/${body.id}`), 400);
  });

  test('wire-computers 5, wire-computers 9: a copy that fails is build-failed and says why; only delete clears it', async () => {
    const { as } = await service.account();
    const source = await made(as, { start: false });
    service.host.engine.faults.put('copy', 'half');
    const copy = await clone(as, source.id);
    const { state, error } = await finished(as, copy.operation_id);
    assert.deepEqual(
      [state, error.code, typeof error.message],
      ['failed', 'build_failed', 'string'],
    );
    const failed = await computer(as, copy.id);
    assert.deepEqual([failed.status, failed.build.failed], ['build-failed', error.message]);
    assert.equal((await as.get('/account')).body.usage.kept_computers, 2);
    assert.equal((await as.delete(`/computers/${copy.id}`)).status, 200);
    assert.ok(!(await service.host.instances()).has(copy.id));
    assert.equal((await as.get('/account')).body.usage.kept_computers, 1);
  });

  test('wire-computers 5, Part 2 AccountQuota 5: pools hold for copies too, counted while they are built', async () => {
    const { as } = await service.account('solo');
    const source = await made(as, { start: false });
    service.host.engine.faults.put('copy', 'hang');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => as.post(`/computers/${source.id}/clone`, {})),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 4);
    for (const refused of answers.filter(({ status }) => status !== 201)) {
      assertRefused(refused, 402);
      assert.match(refused.body.error, /5 computers/);
    }
    assert.equal((await as.get('/account')).body.usage.kept_computers, 5);
  });

  test('wire-computers 5: a host without room for the copy is 503, and nothing is made', async () => {
    const { as, account } = await service.account();
    const source = await made(as, { start: false });
    const untouched = await traces(service, account.id);
    const room = (diskGb: number) =>
      service.database.run(sql('UPDATE hosts SET disk_gb = $1'), [diskGb]);
    await room(10);
    assertRefused(await as.post(`/computers/${source.id}/clone`, {}), 503);
    await room(service.host.row.disk_gb);
    assert.deepEqual(await traces(service, account.id), untouched);
    const stranger = await service.account();
    assertRefused(await stranger.as.post(`/computers/${source.id}/clone`, {}), 404);
  });

  test('wire-computers 9, Part 4 Operations: a clone whose host is away is told as last observed', async () => {
    const { as } = await service.account();
    const source = await made(as, { start: false });
    const copy = await clone(as, source.id);
    await service.host.cable.cut();
    const seen = await operation(as, copy.operation_id);
    assert.deepEqual([seen.state, seen.finished_at], ['running', null]);
    const [listed] = (await as.get('/operations')).body.operations;
    assert.deepEqual(listed, seen);
    await service.host.cable.mend();
    assert.equal((await finished(as, copy.operation_id)).state, 'succeeded');
  });
});
