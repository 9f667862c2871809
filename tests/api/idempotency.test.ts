import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import {
  acted,
  computer,
  finished,
  keyed,
  keyedCreate,
  made,
  operation,
  small,
  traces,
} from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('Idempotency-Key', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const run = (text: string, values: unknown[]) => service.database.run(sql(text), values);

  function assertReplayed(again: Answer, first: Answer): void {
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal(first.headers['idempotent-replayed'], undefined);
    const { vnc: _, url: __, events_url: ___, terminal_url: ____, ...body } = first.body;
    assert.deepEqual([again.status, again.body], [first.status, body]);
  }

  test('wire-computers 10, Part 1 7: on every route that honours it, the same request is answered from the store and done once', async () => {
    const { as } = await service.account();
    const first = await keyedCreate(as, 'create', small);
    assert.equal(typeof first.body.vnc.token, 'string');
    assertReplayed(await keyedCreate(as, 'create', small), first);
    const path = `/computers/${first.body.id}`;
    const calls: [string, string, unknown?][] = [
      ['PATCH', path, { name: 'renamed' }],
      ['PATCH', path, { idle_suspend_min: 5 }],
      ['POST', `${path}/suspend`],
      ['POST', `${path}/start`],
      ['POST', `${path}/restart`],
      ['POST', `${path}/stop?force=true`],
      ['PATCH', path, { cpu: 2 }],
      ['POST', `${path}/clone`, { name: 'copy' }],
      ['DELETE', path],
    ];
    for (const [n, [method, where, json]] of calls.entries()) {
      const once = await keyed(as, `call-${n}`, method, where, json);
      assert.ok(once.status < 300, once.text);
      if (where.endsWith('clone')) await finished(as, once.body.operation_id);
      assertReplayed(await keyed(as, `call-${n}`, method, where, json), once);
    }
    const { operations } = (await as.get('/operations?limit=100')).body;
    const kinds = operations.map(({ kind }: { kind: string }) => kind);
    assert.deepEqual(kinds, [
      'delete',
      'clone',
      'resize',
      'stop',
      'restart',
      'start',
      'suspend',
      'create',
    ]);
    assert.equal((await as.get('/computers')).body.length, 1);
  });

  test('wire-computers 10: a different request is 422, whatever differs, and nothing is done', async () => {
    const { as, account } = await service.account();
    const { body } = await keyedCreate(as, 'k');
    const untouched = await traces(service, account.id);
    const others = [
      await keyedCreate(as, 'k', { ...small, start: false, name: 'x' }),
      await keyedCreate(as, 'k', {}),
      await keyed(as, 'k', 'POST', '/computers?x=1', { ...small, start: false }),
      await keyed(as, 'k', 'POST', `/computers/${body.id}/start`),
      await keyed(as, 'k', 'DELETE', `/computers/${body.id}`),
    ];
    for (const answer of others) {
      assertRefused(answer, 422, undefined, { code: 'idempotency_key_reused' });
    }
    assert.deepEqual(await traces(service, account.id), untouched);
    assert.equal((await computer(as, body.id)).status, 'stopped');
  });

  test('wire-computers 10: a key that cannot be one is 400, and nothing is done', async () => {
    const { as, account } = await service.account();
    const untouched = await traces(service, account.id);
    for (const key of ['', 'a b', 'k'.repeat(256), 'é', 'a\tb']) {
      assertRefused(await keyedCreate(as, key), 400);
    }
    assert.deepEqual(await traces(service, account.id), untouched);
    for (const key of ['!', '~', 'k'.repeat(255), '{"a":1}']) {
      assert.equal((await keyedCreate(as, key)).status, 201, key);
    }
  });

  test('wire-computers 10, Part 3 Operation: while the call is under way it is 409 with its operation, and found by its key', async () => {
    const { as } = await service.account();
    const answers = await Promise.all(Array.from({ length: 5 }, () => keyedCreate(as, 'same')));
    // Whichever came first, and that need not be the one that was sent first.
    const [done, ...more] = answers.filter(
      ({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined,
    );
    assert.ok(done);
    assert.equal(more.length, 0, 'it is done once');
    for (const answer of answers.filter((each) => each !== done)) {
      if (answer.status === 201) assertReplayed(answer, done);
      else {
        const { operation_id } = done.body;
        const further = { code: 'idempotency_in_progress', operation_id };
        assertRefused(answer, 409, 'contention', further);
      }
    }
    assert.equal((await as.get('/computers')).body.length, 1);

    // Recorded before it is carried out: a process that dies then leaves it so.
    const { id, operation_id } = done.body;
    await run(
      "UPDATE operations SET state = 'pending', finished_at = NULL, held_until = now() + interval '1 hour' WHERE id = $1",
      [operation_id],
    );
    await run(
      'UPDATE idempotency_keys SET answer_status = NULL, answer = NULL WHERE operation_id = $1',
      [operation_id],
    );
    const further = { code: 'idempotency_in_progress', operation_id };
    assertRefused(await keyedCreate(as, 'same'), 409, 'contention', further);
    const [found] = (await as.get('/operations?idempotency_key=same')).body.operations;
    assert.deepEqual([found.id, found.state, found.computer_id], [operation_id, 'pending', id]);
  });

  test('wire-computers 10: a refused call releases its key and names no operation', async () => {
    const { as, account } = await service.account();
    const { id } = await made(as);
    const recorded = (await as.get('/operations')).body;
    const refusals: [Answer, number, string?][] = [
      [await keyedCreate(as, 'k', { size: 'none' }), 400],
      [await keyedCreate(as, 'k', { template: 'no/thing' }), 404],
      [await keyedCreate(as, 'k', { cpu: 17 }), 402],
      [await keyed(as, 'k', 'PATCH', `/computers/${id}`, { cpu: 2 }), 409, 'running'],
      [await keyed(as, 'k', 'POST', `/computers/${id}/clone`, {}), 409, 'running'],
      [await keyed(as, 'k', 'PATCH', '/computers/vm-000000000000', { name: 'x' }), 404],
    ];
    service.host.engine.faults.put('stop', 'before', { kind: 'busy' });
    refusals.push([await keyed(as, 'k', 'POST', `/computers/${id}/stop`), 409, 'contention']);
    for (const [answer, status, reason] of refusals) assertRefused(answer, status, reason);
    assert.equal((await traces(service, account.id)).keys, 0);
    assert.deepEqual((await as.get('/operations')).body, recorded);
    assert.equal((await keyedCreate(as, 'k')).status, 201);
  });

  test('wire-computers 10: a 5xx that names no operation was never dispatched, and the same call is carried out later', async () => {
    const { as, account } = await service.account();
    await service.host.cable.cut();
    assertRefused(await keyedCreate(as, 'k'), 503);
    await service.host.cable.mend();
    service.host.engine.faults.put('create', 'before');
    assertRefused(await keyedCreate(as, 'k'), 503);
    assert.equal((await traces(service, account.id)).keys, 0);
    assert.deepEqual((await as.get('/operations')).body.operations, []);
    const done = await keyedCreate(as, 'k');
    assert.equal(done.status, 201);
    assertReplayed(await keyedCreate(as, 'k'), done);
  });

  test('wire-computers 10: a 5xx that names its operation spends the key', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    service.host.engine.faults.put('stop', 'before');
    const failed = await keyed(as, 'k', 'POST', `/computers/${id}/stop`);
    const { operation_id } = failed.body;
    assertRefused(failed, 503, undefined, { operation_id });
    const further = { code: 'idempotency_outcome_unknown', operation_id };
    assertRefused(await keyed(as, 'k', 'POST', `/computers/${id}/stop`), 409, undefined, further);
    assert.equal((await operation(as, operation_id)).state, 'failed');
    assert.equal((await computer(as, id)).status, 'running');
    await acted(as, id, 'stop');
  });

  test('wire-computers 10: a computer that would not start is replayed with its start_error', async () => {
    const { as } = await service.account();
    service.host.engine.faults.put('start', 'before');
    const first = await keyedCreate(as, 'k', small);
    assert.equal(typeof first.body.start_error, 'string');
    assertReplayed(await keyedCreate(as, 'k', small), first);
  });

  test('wire-computers 10, Part 4 Operations, Part 8 Sizes: keys are kept 24 hours, per scope', async () => {
    const { as, account } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const confined = (await service.member(account.id, 'member', { workspace: home })).as;
    const colleague = (await service.member(account.id, 'member')).as;
    const stranger = await service.account();
    const one = await keyedCreate(as, 'k');
    assertReplayed(await keyedCreate(colleague, 'k'), one);
    const two = await keyedCreate(confined, 'k');
    const three = await keyedCreate(stranger.as, 'k');
    assert.equal(new Set([one, two, three].map(({ body }) => body.id)).size, 3);
    const found = async (key: Client) =>
      (await key.get('/operations?idempotency_key=k')).body.operations.map(
        (each: { computer_id: string }) => each.computer_id,
      );
    assert.deepEqual(await found(as), [one.body.id]);
    assert.deepEqual(await found(confined), [two.body.id]);

    const age = (interval: string) =>
      run('UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE operation_id = $1', [
        one.body.operation_id,
        interval,
      ]);
    await age('23 hours 59 minutes');
    assertReplayed(await keyedCreate(as, 'k'), one);
    await age('24 hours 1 second');
    assert.deepEqual(await found(as), []);
    const later = await keyedCreate(as, 'k');
    assert.equal(later.status, 201);
    assert.notEqual(later.body.id, one.body.id);
    assert.deepEqual(await found(as), [later.body.id]);
  });

  test('Part 8 Rate: an answer from the store, or one still in progress, costs one unit', async () => {
    const { as, account } = await service.account();
    await keyedCreate(as, 'k');
    const fresh = async () => (await service.member(account.id, 'member')).as;
    const spent = (answer: Answer) => {
      const { limit, remaining } = assertMetered(answer);
      return limit - remaining;
    };
    assert.equal(spent(await keyedCreate(await fresh(), 'k')), 1);
    await run('UPDATE idempotency_keys SET answer_status = NULL WHERE account_id = $1', [
      account.id,
    ]);
    const underWay = await keyedCreate(await fresh(), 'k');
    assert.deepEqual([underWay.status, spent(underWay)], [409, 1]);
    assert.equal(spent(await keyedCreate(await fresh(), 'other')), 100);
  });

  test('Part 1 7: where it is not documented it is neither checked nor kept', async () => {
    const { as, account } = await service.account();
    const { id } = await made(as, { start: false });
    const headers = { 'idempotency-key': 'not a key' };
    const [one, two] = [
      await as.send('POST', '/workspaces', { json: { name: 'one' }, headers }),
      await as.send('POST', '/workspaces', { json: { name: 'two' }, headers }),
    ];
    assert.deepEqual([one.status, two.status], [200, 200]);
    const json = { workspace_id: one.body.id };
    const move = await as.send('PUT', `/computers/${id}/workspace`, { json, headers });
    assert.equal(move.status, 200);
    assert.equal((await traces(service, account.id)).keys, 0);
  });
});
