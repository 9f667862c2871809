import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import {
  act,
  acted,
  clone,
  finished,
  keepUnfinished,
  made,
  operation,
} from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

interface Listed {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly computer_id: string;
}

suite('operations', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const run = (text: string, values: unknown[]) => service.database.run(sql(text), values);
  const page = async (
    as: Client,
    query = '',
  ): Promise<{ operations: Listed[]; next_cursor: string | null }> => {
    const answer = await as.get(`/operations${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const fill = (account: string, computer: string, count: number) =>
    run(
      `INSERT INTO operations (id, account_id, computer_id, kind, state, command, held_until, finished_at)
       SELECT 'op_' || substr(md5($2 || n), 1, 24), $1, $2, 'stop', 'succeeded', '{}', now(), now()
       FROM generate_series(1, $3::int) n`,
      [account, computer, count],
    );

  test('Part 2 Operation, wire-computers 9: an operation has exactly its fields', async () => {
    const { as } = await service.account();
    const { id, operation_id } = await made(as);
    const read = await operation(as, operation_id);
    assert.deepEqual(read, {
      id: operation_id,
      kind: 'create',
      computer_id: id,
      state: 'succeeded',
      error: null,
      idempotency_key: null,
      created_at: read.created_at,
      updated_at: read.updated_at,
      finished_at: read.finished_at,
    });
    for (const time of [read.created_at, read.updated_at, read.finished_at]) {
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
    assert.deepEqual(await page(as), { operations: [read], next_cursor: null });
  });

  test('Part 4 Operations, Part 1 Listings, wire-computers 9: newest first, twenty a page, led on by the cursor to null', async () => {
    const { as, account } = await service.account();
    const { id } = await made(as, { start: false });
    await fill(account.id, id, 104);
    assert.equal((await page(as)).operations.length, 20);
    assert.equal((await page(as, '?limit=1')).operations.length, 1);
    assert.equal((await page(as, '?limit=100')).operations.length, 100);
    const whole: string[] = [];
    let query = '?limit=35';
    for (;;) {
      const { operations, next_cursor } = await page(as, query);
      whole.push(...operations.map((each) => each.id));
      if (next_cursor === null) break;
      assert.equal(operations.length, 35);
      query = `?limit=35&cursor=${next_cursor}`;
      // What comes meanwhile is newer than the pages that follow.
      await acted(as, id, 'start');
    }
    assert.equal(whole.length, 105);
    assert.equal(new Set(whole).size, 105);
    const stored = await run(
      "SELECT id FROM operations WHERE account_id = $1 AND kind <> 'start' ORDER BY seq DESC",
      [account.id],
    );
    assert.deepEqual(
      whole,
      (stored as unknown as Listed[]).map((each) => each.id),
    );
    assert.equal((await page(as, '?limit=100')).next_cursor === null, false);
  });

  test('Part 4 Operations: exactly one page has no next', async () => {
    const { as, account } = await service.account();
    const { id } = await made(as, { start: false });
    await fill(account.id, id, 19);
    const { operations, next_cursor } = await page(as);
    assert.deepEqual([operations.length, next_cursor], [20, null]);
  });

  test('Part 4 Operations, Part 7: an unknown, repeated or impossible parameter is 400 and named', async () => {
    const { as } = await service.account();
    const { operation_id } = await made(as, { start: false });
    const queries = [
      [
        'limit=0',
        'limit=101',
        'limit=',
        'limit=1.5',
        'limit=-1',
        'limit=x',
        'limit=01',
        'limit=1e1',
      ],
      ['limit=5&limit=5', `cursor=${operation_id}&cursor=${operation_id}`],
      ['cursor=', 'cursor=x', `cursor=${operation_id}0`, `cursor=%20${operation_id}`],
      [
        'computer_id=',
        'computer_id=x',
        'computer_id=%20vm-000000000000',
        'computer_id=vm-00000000000G',
      ],
      ['idempotency_key=', 'idempotency_key=a%20b', `idempotency_key=${'k'.repeat(256)}`],
      ['idempotency_key=%C3%A9', 'idempotency_key=a&idempotency_key=a'],
      ['unknown=1', 'state=running', 'Limit=5', 'page=1'],
    ].flat();
    for (const query of queries) {
      const answer = await as.get(`/operations?${query}`);
      assertRefused(answer, 400);
      assert.match(answer.body.error, new RegExp(query.split('=')[0] as string), query);
    }
    for (const query of ['limit=5', 'x', 'unknown=1']) {
      assertRefused(await as.get(`/operations/${operation_id}?${query}`), 400);
    }
    const never = await as.get(`/operations?cursor=op_${'0'.repeat(24)}`);
    assertRefused(never, 400);
    const stranger = await service.account();
    assertRefused(await stranger.as.get(`/operations?cursor=${operation_id}`), 400);
  });

  test('Part 4 Operations: by computer, for a clone the new one; by key', async () => {
    const { as } = await service.account();
    const source = await made(as, { start: false });
    const copy = await clone(as, source.id);
    await finished(as, copy.operation_id);
    const key = `k${'~'.repeat(200)}`;
    const headers = { 'idempotency-key': key };
    const keyed = await as.send('POST', `/computers/${source.id}/start`, { headers });
    await acted(as, source.id, 'stop');
    const kinds = async (query: string) =>
      (await page(as, query)).operations.map(({ kind }) => kind);
    assert.deepEqual(await kinds(`?computer_id=${source.id}`), ['stop', 'start', 'create']);
    assert.deepEqual(await kinds(`?computer_id=${copy.id}`), ['clone']);
    assert.deepEqual(await kinds('?computer_id=vm-000000000000'), []);
    const { operations } = await page(as, `?idempotency_key=${encodeURIComponent(key)}`);
    assert.deepEqual(
      operations.map(({ id }) => id),
      [keyed.body.operation_id],
    );
    assert.equal((await operation(as, keyed.body.operation_id)).idempotency_key, key);
    const both = `idempotency_key=${encodeURIComponent(key)}&computer_id`;
    assert.deepEqual(await kinds(`?${both}=${source.id}`), ['start']);
    assert.deepEqual(await kinds(`?${both}=${copy.id}`), []);
    assert.deepEqual(await kinds('?idempotency_key=other'), []);
    const limited = await page(as, `?computer_id=${source.id}&limit=2`);
    assert.deepEqual(await kinds(`?computer_id=${source.id}&cursor=${limited.next_cursor}`), [
      'create',
    ]);
  });

  test('Part 4 Operations, Part 5 2: a confined key sees those of its workspace’s computers, others are 404', async () => {
    const { as, account } = await service.account();
    const home = (await as.post('/workspaces', { name: 'home' })).body.id;
    const confined = (await service.member(account.id, 'viewer', { workspace: home })).as;
    const inside = await made(as, { workspace_id: home, start: false });
    const outside = await made(as, { start: false });
    const stranger = await service.account();
    assert.deepEqual(
      (await page(confined)).operations.map(({ id }) => id),
      [inside.operation_id],
    );
    assert.deepEqual((await page(confined, `?computer_id=${outside.id}`)).operations, []);
    assert.equal((await operation(confined, inside.operation_id)).computer_id, inside.id);
    const unseen = [
      await confined.get(`/operations/${outside.operation_id}`),
      await stranger.as.get(`/operations/${inside.operation_id}`),
      await as.get(`/operations/op_${'0'.repeat(24)}`),
      await as.get('/operations/x'),
      await as.get(`/operations/${inside.operation_id.toUpperCase()}`),
    ];
    for (const answer of unseen) {
      assertRefused(answer, 404);
      assert.equal(answer.body.error, 'operation not found');
    }
    assertRefused(await confined.get(`/operations?cursor=${outside.operation_id}`), 400);
    assert.deepEqual((await page(stranger.as)).operations, []);
  });

  test('Part 4 Operations, Part 8 Sizes: kept seven days, then neither read, listed nor a cursor', async () => {
    const { as } = await service.account();
    const { id, operation_id: old } = await made(as, { start: false });
    const { operation_id: young } = await acted(as, id, 'start');
    const age = (operationId: string, interval: string) =>
      run(`UPDATE operations SET created_at = now() - $2::interval WHERE id = $1`, [
        operationId,
        interval,
      ]);
    await age(old, '6 days 23 hours 59 minutes');
    assert.equal((await page(as)).operations.length, 2);
    await age(old, '7 days 1 second');
    assert.deepEqual(
      (await page(as)).operations.map((each) => each.id),
      [young],
    );
    assertRefused(await as.get(`/operations/${old}`), 404);
    assertRefused(await as.get(`/operations?cursor=${old}`), 400);
  });

  test('Part 4 Operations: a refused call records nothing', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const recorded = await page(as);
    const refusals = [
      await act(as, id, 'suspend'),
      await act(as, id, 'start?resume_only=no'),
      await as.patch(`/computers/${id}`, { disk_gb: 1 }),
      await as.patch(`/computers/${id}`, { cpu: 17 }),
      await as.post('/computers', { size: 'none' }),
      await as.post('/computers', { cpu: 17 }),
      await as.post(`/computers/${id}/clone`, { name: '' }),
      await as.put(`/computers/${id}/workspace`, { workspace_id: 'x' }),
    ];
    assert.deepEqual(
      refusals.map(({ status }) => status),
      [409, 400, 400, 402, 400, 402, 400, 404],
    );
    assert.deepEqual(await page(as), recorded);
  });

  test('Part 4 Operations, Part 8 Sizes: of a page the first five unfinished are asked for, newest first', async () => {
    const { as, account } = await service.account();
    const source = await made(as, { start: false });
    const clones: { operation_id: string; id: string }[] = [];
    for (let n = 0; n < 7; n += 1) {
      clones.push(await clone(as, source.id));
      // Nobody but the reader takes them up, however long the others take.
      await keepUnfinished(service, account.id);
    }
    // Two that are pending and newer: they count, though nobody can be asked about them.
    await run(
      `INSERT INTO operations (id, account_id, computer_id, kind, state, command, held_until)
       SELECT 'op_' || substr(md5($1 || n), 1, 24), $1, 'vm-00000000000' || n, 'stop', 'pending', '{}',
         now() + interval '1 hour' FROM generate_series(1, 2) n`,
      [account.id],
    );
    const first = (await page(as)).operations.filter(({ kind }) => kind === 'clone');
    assert.deepEqual(
      first.map(({ state }) => state),
      ['succeeded', 'succeeded', 'succeeded', 'running', 'running', 'running', 'running'],
    );
    assert.equal((await operation(as, clones[0]?.operation_id ?? '')).state, 'succeeded');
  });
});
