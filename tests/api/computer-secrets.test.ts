import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import { act, acted, clone, computer, finished, keyed, made, small } from '../support/computers.ts';
import { bind, bound, erased, replaced, secret } from '../support/secrets.ts';
import { startService, type TestService } from '../support/service.ts';

suite('secrets bound to computers', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const list = async (as: Awaited<ReturnType<TestService['account']>>['as'], id: string) =>
    (await as.get(`/computers/${id}/secrets`)).body;

  test('wire-account 3: the list is replaced whole and counted, and `[]` clears it', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    assert.deepEqual(await list(as, id), { secrets: [], version: 0 });
    assert.equal((await computer(as, id)).secrets, undefined);
    const [one, two] = [await secret(as), await secret(as)];
    const first = await bound(as, id, [{ secret_id: one.id, env: 'TOKEN' }]);
    const binding = { secret_id: one.id, revision_id: one.revision_id, env: 'TOKEN' };
    assert.deepEqual(first, { secrets: [binding], version: 1 });
    const both = await bound(as, id, [
      { secret_id: two.id, file: 'token', env: null },
      { secret_id: one.id, env: 'token', revision_id: one.revision_id },
    ]);
    assert.deepEqual(both, {
      secrets: [
        { secret_id: two.id, revision_id: two.revision_id, file: 'token' },
        { ...binding, env: 'token' },
      ],
      version: 2,
    });
    assert.deepEqual(await list(as, id), both);
    assert.deepEqual(await bound(as, id, []), { secrets: [], version: 3 });
    const { status, ...record } = await computer(as, id);
    assert.equal(status, 'stopped');
    assert.deepEqual(
      Object.keys(record).filter((key) => key.startsWith('secrets')),
      [],
    );
  });

  test('wire-account 3: of two that change the same version one is refused', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const one = await secret(as);
    const wish = [{ secret_id: one.id, env: 'A' }];
    assertRefused(await bind(as, id, wish, 1), 409, 'stale_revision');
    assert.equal((await bind(as, id, wish, 0)).body.version, 1);
    assertRefused(await bind(as, id, [], 0), 409, 'stale_revision');
    assert.equal((await bind(as, id, [], 1)).body.version, 2);
    assert.equal((await bind(as, id, wish)).body.version, 3);
  });

  test('wire-account 3: a bad list is 400 on the computer and with a new one, and nothing is bound or made', async () => {
    const { as } = await service.account();
    const { id } = await made(as, { start: false });
    const { id: secret_id, revision_id } = await secret(as);
    const others = await Promise.all(Array.from({ length: 33 }, () => secret(as)));
    const files = others.map((other, n) => ({ secret_id: other.id, file: `f${n}` }));
    const vars = others.map((other, n) => ({ secret_id: other.id, env: `E${n}` }));
    const other = others[0]?.id;
    const bad: unknown[] = [
      'x',
      [{ secret_id }],
      [{ secret_id, env: 'A', file: 'a' }],
      [{ secret_id, env: null }],
      [{ env: 'A' }],
      [{ secret_id, env: 'A', value: 'v' }],
      [
        { secret_id, env: 'A' },
        { secret_id, file: 'a' },
      ],
      [
        { secret_id, env: 'A' },
        { secret_id: other, env: 'A' },
      ],
      [
        { secret_id, file: 'a' },
        { secret_id: other, file: 'a' },
      ],
      ...['', '1A', 'A-B', 'A=B', 'Ä', 'A'.repeat(65), 7].map((env) => [{ secret_id, env }]),
      ...['', 'A', '1', '../x', 'a/b', 'a.b', 'a'.repeat(49)].map((file) => [{ secret_id, file }]),
      files.slice(0, 9),
      vars,
    ];
    for (const secrets of bad) {
      assertRefused(await bind(as, id, secrets), 400);
      assertRefused(await as.post('/computers', { ...small, start: false, secrets }), 400);
    }
    const withRevision = [{ secret_id, env: 'A', revision_id }];
    assertRefused(await as.post('/computers', { ...small, secrets: withRevision }), 400);
    assert.equal((await list(as, id)).version, 0);
    assert.equal((await as.get('/computers')).body.length, 1);
    const most = [...files.slice(0, 8), ...vars.slice(8, 32)];
    assert.equal((await bound(as, id, most)).secrets.length, 32);
  });

  test('wire-account 3: what does not resolve is 400 with one sentence: unknown, deleted, of another scope or account', async () => {
    const { as } = await service.account();
    const stranger = (await service.account()).as;
    const [here, there] = [
      (await as.post('/workspaces', { name: 'here' })).body.id as string,
      (await as.post('/workspaces', { name: 'there' })).body.id as string,
    ];
    const mine = { wide: await secret(as), here: await secret(as, 'v', here) };
    const gone = await secret(as);
    await erased(as, gone);
    const inNone = (await made(as, { start: false })).id;
    const inHere = (await made(as, { start: false, workspace_id: here })).id;
    const wish = ({ id }: { id: string }) => [{ secret_id: id, env: 'A' }];
    const foreign = [gone, await secret(as, 'v', there), await secret(stranger), { id: 'csec-x' }];
    const sentences = new Set<string>();
    for (const [id, wished] of [
      ...[...foreign, mine.here].map((one) => [inNone, one] as const),
      ...foreign.map((one) => [inHere, one] as const),
    ]) {
      const answer = await bind(as, id, wish(wished));
      assertRefused(answer, 400);
      sentences.add(answer.body.error);
    }
    assertRefused(await as.post('/computers', { ...small, secrets: wish(mine.here) }), 400);
    assert.equal(sentences.size, 1);
    await bound(as, inNone, wish(mine.wide));
    await bound(as, inHere, [...wish(mine.here), { secret_id: mine.wide.id, env: 'B' }]);
  });

  test('wire-account 3: only the revision that the computer holds can be sent', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    const { id } = await made(as, { start: false, secrets: [{ secret_id: one.id, env: 'A' }] });
    const next = await replaced(as, one, 'another');
    const wish = (revision_id: string) => [{ secret_id: one.id, env: 'B', revision_id }];
    assertRefused(await bind(as, id, wish(next.revision_id)), 409, 'stale_revision');
    await bound(as, id, wish(one.revision_id));
    const other = await secret(as);
    const unheld = [{ secret_id: other.id, env: 'B', revision_id: other.revision_id }];
    assertRefused(await bind(as, id, unheld), 409, 'stale_revision');
  });

  test('wire-account 3: the first is bound while it is stopped; later changes wait for a restart, and it is not suspended before', async () => {
    const { as } = await service.account();
    const [one, two] = [await secret(as), await secret(as)];
    const wish = [{ secret_id: one.id, env: 'A' }];
    const { id } = await made(as);
    assertRefused(await bind(as, id, wish), 409, 'unsupported');
    await acted(as, id, 'suspend');
    assertRefused(await bind(as, id, wish), 409, 'unsupported');
    await acted(as, id, 'stop');
    await bound(as, id, wish);
    await acted(as, id, 'start');
    assert.equal((await computer(as, id)).secrets_pending, false);

    await bound(as, id, [...wish, { secret_id: two.id, file: 'b' }]);
    assert.equal((await computer(as, id)).secrets_pending, true);
    assertRefused(await act(as, id, 'suspend'), 409, 'unsupported');
    await acted(as, id, 'restart');
    const record = await computer(as, id);
    assert.deepEqual([record.secrets_pending, record.secrets_generation], [false, 2]);
    await acted(as, id, 'suspend');
    await bound(as, id, []);
    // It still has them: in its saved session, and when that goes on.
    assert.equal((await computer(as, id)).secrets_pending, true);
    await acted(as, id, 'start');
    assert.equal((await computer(as, id)).secrets_pending, true);
    assert.equal((await computer(as, id)).secrets, undefined);
    await acted(as, id, 'restart');
    assert.equal((await computer(as, id)).secrets_pending, undefined);
  });

  test('wire-computers 5: a stopped computer with secrets is not restarted, and a copy has none', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    const { id } = await made(as, { start: false, secrets: [{ secret_id: one.id, env: 'A' }] });
    assertRefused(await act(as, id, 'restart'), 409, 'unsupported');
    const copy = await clone(as, id);
    assert.equal((await finished(as, copy.operation_id)).state, 'succeeded');
    assert.deepEqual(await list(as, copy.id), { secrets: [], version: 0 });
    await acted(as, copy.id, 'restart');
    assert.equal((await computer(as, copy.id)).secrets, undefined);
  });

  test('Part 4 Workspaces 4: a computer with bound secrets stays in its workspace', async () => {
    const { as } = await service.account();
    const there = (await as.post('/workspaces', { name: 'there' })).body.id as string;
    const one = await secret(as);
    const { id } = await made(as, { start: false, secrets: [{ secret_id: one.id, env: 'A' }] });
    const move = () => as.put(`/computers/${id}/workspace`, { workspace_id: there });
    assertRefused(await move(), 409, 'unsupported');
    await bound(as, id, []);
    assert.equal((await move()).status, 200);
  });

  test('wire-computers 10: a create with secrets is replayed with them, and another list is another request', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    const create = (env: string) =>
      keyed(as, 'k', 'POST', '/computers', { ...small, secrets: [{ secret_id: one.id, env }] });
    const first = await create('A');
    assert.equal(first.status, 201, first.text);
    const again = await create('A');
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.deepEqual(
      [again.body.id, again.body.secrets, again.body.secrets_applied],
      [first.body.id, first.body.secrets, first.body.secrets_applied],
    );
    assertRefused(await create('B'), 422, undefined, { code: 'idempotency_key_reused' });
  });

  test('wire-account 3: without a host nothing is bound', async () => {
    const alone = await startService();
    try {
      const { as } = await alone.account();
      const one = await secret(as);
      assert.equal((await as.get('/secrets')).body.delivery, false);
      const wish = { ...small, secrets: [{ secret_id: one.id, env: 'A' }] };
      assertRefused(await as.post('/computers', wish), 503);
    } finally {
      await alone.stop();
    }
    const { as } = await service.account();
    assert.equal((await as.get('/secrets')).body.delivery, true);
  });
});
