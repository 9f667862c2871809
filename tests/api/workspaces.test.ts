import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import { startService, type TestService } from '../support/service.ts';

suite('workspaces', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  test('Part 2 Workspace, Part 4 Workspaces 1: create answers 200 with id, trimmed name, created_at', async () => {
    const { as } = await service.account();
    const answer = await as.post('/workspaces', { name: '\t  Design team \n' });
    assert.equal(answer.status, 200);
    assert.match(answer.body.id, /^wsp-[0-9a-f]{12}$/);
    assert.equal(answer.body.name, 'Design team');
    assert.match(answer.body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(Object.keys(answer.body), ['id', 'name', 'created_at']);
    assert.deepEqual((await as.get(`/workspaces/${answer.body.id}`)).body, answer.body);
  });

  test('Part 4 Workspaces 1: a name has 1 to 40 characters, counted as code points', async () => {
    const { as } = await service.account();
    for (const name of ['x', 'x'.repeat(40), '🧊'.repeat(40), '\u0085', 'Ünïcode ✓']) {
      const answer = await as.post('/workspaces', { name });
      assert.equal(answer.status, 200, JSON.stringify(name));
      assert.equal(answer.body.name, name);
    }
    for (const name of ['', '   ', 'x'.repeat(41), '🧊'.repeat(41), ' \n\t ']) {
      assertRefused(await as.post('/workspaces', { name }), 400);
    }
  });

  test('Part 4 Workspaces 1: no ASCII control character inside a name', async () => {
    const { as } = await service.account();
    for (const code of [...Array(32).keys(), 0x7f]) {
      const name = `a${String.fromCharCode(code)}b`;
      assertRefused(await as.post('/workspaces', { name }), 400);
    }
    assertRefused(await as.post('/workspaces', { name: 'lone \ud800 surrogate' }), 400);
    assert.deepEqual((await as.get('/workspaces')).body, []);
  });

  test('Part 4 Workspaces 1: any field other than name, and a name that is no string, is 400', async () => {
    const { as } = await service.account();
    const bodies = [
      {},
      [],
      null,
      'name',
      7,
      true,
      { name: 7 },
      { name: null },
      { name: ['a'] },
      { name: { a: 1 } },
      { name: 'a', color: 'red' },
      { Name: 'a' },
      { name: 'a', name2: 'b' },
      { color: 1 },
    ];
    const { id } = (await as.post('/workspaces', { name: 'kept' })).body;
    for (const json of bodies) {
      assertRefused(await as.send('POST', '/workspaces', { json }), 400);
      assertRefused(await as.send('PATCH', `/workspaces/${id}`, { json }), 400);
    }
    const proto = { raw: '{"name":"a","__proto__":{"x":1}}' };
    assertRefused(await as.send('POST', '/workspaces', proto), 400);
    assert.deepEqual(
      (await as.get('/workspaces')).body.map((w: { name: string }) => w.name),
      ['kept'],
    );
  });

  test('Part 4 Workspaces 1: a name is unique within its account only', async () => {
    const [one, two] = [await service.account(), await service.account()];
    const first = await one.as.post('/workspaces', { name: 'same' });
    assertRefused(await one.as.post('/workspaces', { name: ' same ' }), 400);
    assert.equal((await two.as.post('/workspaces', { name: 'same' })).status, 200);
    const other = await one.as.post('/workspaces', { name: 'Same' });
    assert.equal(other.status, 200, 'names differ by case');
    assertRefused(await one.as.patch(`/workspaces/${other.body.id}`, { name: 'same' }), 400);
    const kept = await one.as.patch(`/workspaces/${first.body.id}`, { name: 'same' });
    assert.equal(kept.status, 200, 'a workspace may keep its own name');
  });

  test('Part 4 Workspaces 1: the 501st workspace is refused, also when asked for at once', async () => {
    const { as, account } = await service.account();
    await service.database.run(
      {
        name: 'fill',
        text: `INSERT INTO workspaces (id, account_id, name)
        SELECT 'wsp-' || lpad(to_hex(n), 12, '0'), $1, 'n' || n FROM generate_series(1, 495) n`,
      },
      [account.id],
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => as.post('/workspaces', { name: `burst ${n}` })),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 5);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      assertRefused(answer, 400);
      assert.match(answer.body.error, /500/);
    }
    assert.equal((await as.get('/workspaces')).body.length, 500);
  });

  test('Part 4 Workspaces 1: two creates of one name at once give one 200 and one 400', async () => {
    const { as } = await service.account();
    for (let round = 0; round < 5; round += 1) {
      const name = `race ${round}`;
      const answers = await Promise.all([
        as.post('/workspaces', { name }),
        as.post('/workspaces', { name }),
      ]);
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400]);
    }
  });

  test('Part 4 Workspaces 2, Part 8 Sizes: a body of 4096 bytes passes, one more is 413 naming the limit', async () => {
    const { as } = await service.account();
    const { id } = (await as.post('/workspaces', { name: 'x' })).body;
    for (const [method, path] of [
      ['POST', '/workspaces'],
      ['PATCH', `/workspaces/${id}`],
    ] as const) {
      const padded = (size: number) =>
        `{"name":"${method}"${' '.repeat(size - 11 - method.length)}}`;
      assert.equal(padded(4096).length, 4096);
      assert.equal((await as.send(method, path, { raw: padded(4096) })).status, 200);
      const answer = await as.send(method, path, { raw: padded(4097) });
      assertRefused(answer, 413);
      assert.match(answer.body.error, /4096/);
      assertMetered(answer);
    }
  });

  test('Part 4 Workspaces 2, Part 5 2: a confined key may not create, rename or delete, its own included', async () => {
    const { as, account } = await service.account();
    const { id } = (await as.post('/workspaces', { name: 'mine' })).body;
    const confined = await service.member(account.id, 'owner', { workspace: id });
    assertRefused(await confined.as.post('/workspaces', { name: 'new' }), 403);
    assertRefused(await confined.as.patch(`/workspaces/${id}`, { name: 'new' }), 403);
    assertRefused(await confined.as.delete(`/workspaces/${id}`), 403);
    assertRefused(await confined.as.delete('/workspaces/wsp-000000000000'), 403);
    assert.equal((await as.get(`/workspaces/${id}`)).body.name, 'mine');
  });

  test('Part 4 Workspaces 3: oldest first; a confined key lists and reads only its own', async () => {
    const { as, account } = await service.account();
    const ids: string[] = [];
    for (const name of ['c', 'a', 'b']) ids.push((await as.post('/workspaces', { name })).body.id);
    const listed = async (who: typeof as) =>
      (await who.get('/workspaces')).body.map(({ id }: { id: string }) => id);
    assert.deepEqual(await listed(as), ids);
    const viewer = await service.member(account.id, 'viewer');
    assert.deepEqual(await listed(viewer.as), ids, 'whatever the role');
    const confined = await service.member(account.id, 'viewer', { workspace: ids[1] as string });
    assert.deepEqual(await listed(confined.as), [ids[1]]);
    assert.equal((await confined.as.get(`/workspaces/${ids[1]}`)).status, 200);
  });

  test('Part 4 Workspaces 3: an invisible id is byte for byte a nonexistent one', async () => {
    const [one, two] = [await service.account(), await service.account()];
    const mine = (await one.as.post('/workspaces', { name: 'mine' })).body.id;
    const other = (await one.as.post('/workspaces', { name: 'other' })).body.id;
    const confined = await service.member(one.account.id, 'owner', { workspace: other });
    const plain = ({ text, body, headers }: Awaited<ReturnType<typeof one.as.get>>) => [
      text.replace(body.request_id, ''),
      headers['content-length'],
      headers['content-type'],
    ];
    const nonexistent = await two.as.get('/workspaces/wsp-ffffffffffff');
    assertRefused(nonexistent, 404);
    for (const [who, id] of [
      [two.as, mine],
      [confined.as, mine],
      [two.as, 'wsp-xyz'],
      [two.as, mine.toUpperCase()],
      [two.as, `${mine}%00`],
      [two.as, 'null'],
      [two.as, `%20${mine}`],
    ] as const) {
      const answer = await who.get(`/workspaces/${id}`);
      assert.equal(answer.status, 404);
      if (!id.includes('%00')) assert.deepEqual(plain(answer), plain(nonexistent), id);
    }
    for (const method of ['PATCH', 'DELETE'] as const) {
      const sending = method === 'PATCH' ? { json: { name: 'taken over' } } : {};
      const invisible = await two.as.send(method, `/workspaces/${mine}`, sending);
      assertRefused(invisible, 404);
      assert.deepEqual(
        plain(invisible),
        plain(await two.as.send(method, '/workspaces/wsp-ffffffffffff', sending)),
      );
    }
    assertRefused(await two.as.get(`/workspaces/${mine}/members`), 404);
    assert.equal((await one.as.get(`/workspaces/${mine}`)).body.name, 'mine');
  });

  test('Part 4 Workspaces 5: deleting revokes every confined key in the same step and counts them', async () => {
    const { as, account } = await service.account();
    const doomed = (await as.post('/workspaces', { name: 'doomed' })).body.id;
    const kept = (await as.post('/workspaces', { name: 'kept' })).body.id;
    const confined = [
      await service.member(account.id, 'viewer', { workspace: doomed }),
      await service.member(account.id, 'owner', { workspace: doomed }),
    ];
    const elsewhere = await service.member(account.id, 'member', { workspace: kept });
    const answer = await as.delete(`/workspaces/${doomed}`);
    assert.deepEqual(answer.body, { ok: true, revoked_keys: 2 });
    for (const key of confined) assertRefused(await key.as.get('/whoami'), 401, 'revoked');
    assert.equal((await elsewhere.as.get('/whoami')).status, 200);
    assertRefused(await as.get(`/workspaces/${doomed}`), 404);
    assertRefused(await as.delete(`/workspaces/${doomed}`), 404);
    assert.deepEqual((await as.delete(`/workspaces/${kept}`)).body, { ok: true, revoked_keys: 1 });
  });

  test('Part 2 WorkspaceMember, Part 4 Workspaces 9, wire-account 7: members of the account, oldest first', async () => {
    const { as, account, owner, user } = await service.account();
    const id = (await as.post('/workspaces', { name: 'team' })).body.id;
    const viewer = await service.member(account.id, 'viewer');
    const member = await service.member(account.id, 'member');
    await service.operator.setUser(viewer.email, { name: 'Vera', suspended: true });
    await service.operator.setMember(account.id, member.email, { seatSuspended: true });
    const { body } = await as.get(`/workspaces/${id}/members`);
    const rows = body.map(({ accepted_at, ...row }: Record<string, unknown>) => {
      assert.equal(typeof accepted_at, 'string');
      return row;
    });
    assert.deepEqual(rows, [
      {
        user_id: user.id,
        email: owner,
        name: null,
        role: 'owner',
        suspended: false,
        seat_suspended: false,
      },
      {
        user_id: viewer.userId,
        email: viewer.email,
        name: 'Vera',
        role: 'viewer',
        suspended: true,
        seat_suspended: false,
      },
      {
        user_id: member.userId,
        email: member.email,
        name: null,
        role: 'member',
        suspended: false,
        seat_suspended: true,
      },
    ]);
    const confined = await service.member(account.id, 'owner', { workspace: id });
    assertRefused(await confined.as.get(`/workspaces/${id}/members`), 403);
    assertRefused(await as.get('/workspaces/wsp-000000000000/members'), 404);
  });
});

suite('workspaces on a fleet', () => {
  test('Part 4 Workspaces 6: computers keep a workspace, an unheard host keeps it too, nothing is revoked', async () => {
    let computers: number | undefined = 3;
    const service = await startService({
      inventory: {
        observe: async () => ({ computers: [], snapshotBytes: 0 }),
        computersIn: async () => computers,
      },
    });
    try {
      const { as, account } = await service.account();
      const id = (await as.post('/workspaces', { name: 'busy' })).body.id;
      const confined = await service.member(account.id, 'viewer', { workspace: id });
      const refused = await as.delete(`/workspaces/${id}`);
      assertRefused(refused, 409, 'unsupported');
      assert.match(refused.body.error, /3 computers/);
      computers = undefined;
      assertRefused(await as.delete(`/workspaces/${id}`), 503);
      assert.equal((await confined.as.get(`/workspaces/${id}`)).status, 200);
      computers = 0;
      assert.deepEqual((await as.delete(`/workspaces/${id}`)).body, { ok: true, revoked_keys: 1 });
    } finally {
      await service.stop();
    }
  });
});
