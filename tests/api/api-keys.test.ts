import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { trimRevocationEvidence } from '../../packages/server/db/api-keys.ts';
import { hashKey } from '../../packages/server/app/secrets.ts';
import { assertRefused } from '../support/assertions.ts';
import { startService, type TestService } from '../support/service.ts';

suite('whoami and API keys', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  test('wire-account 4: whoami tells person, account, role and key', async () => {
    const { as, account, user, key, owner } = await service.account('studio');
    await service.operator.setUser(owner, { name: 'Olga' });
    const { body } = await as.get('/whoami');
    assert.deepEqual(body.user, { id: user.id, email: owner, name: 'Olga' });
    assert.deepEqual(body.account, {
      id: account.id,
      name: 'Tests',
      plan: 'studio',
      status: 'active',
    });
    assert.equal(body.role, 'owner');
    assert.equal(body.workspace, null);
    assert.equal(body.key.id, key.id);
    assert.equal(body.key.prefix, `${key.raw.slice(0, 12)}…`);
    assert.ok(Date.parse(body.key.last_used_at) >= Date.parse(body.key.created_at) - 1);
    const none = await service.account('none');
    assert.equal((await none.as.get('/whoami')).body.account.plan, null);
  });

  test('wire-account 4: a confined key learns neither e-mail nor names nor plan', async () => {
    const { as, account } = await service.account();
    const workspace = (await as.post('/workspaces', { name: 'w' })).body;
    const confined = await service.member(account.id, 'member', { workspace: workspace.id });
    await service.operator.setUser(confined.email, { name: 'Hidden' });
    const answer = await confined.as.get('/whoami');
    assert.deepEqual(answer.body.user, { id: confined.userId, email: null, name: null });
    assert.deepEqual(answer.body.account, {
      id: account.id,
      name: null,
      plan: null,
      status: 'active',
    });
    assert.deepEqual(answer.body.workspace, workspace);
    assert.equal(answer.body.key.workspace_id, workspace.id);
    assert.equal(answer.body.key.workspace_name, 'w');
    assert.doesNotMatch(answer.text, /@|Hidden|Tests|swarm/);
  });

  test('wire-account 4: whoami works on a suspended account', async () => {
    const { as, account } = await service.account();
    await service.operator.setAccount(account.id, { suspended: true });
    const answer = await as.get('/whoami');
    assert.equal(answer.body.account.status, 'suspended');
    assertRefused(await as.get('/api-keys'), 403, 'revoked');
  });

  test('wire-account 4, Part 5 4: a made key is shown once, has the caller’s scope and cannot manage keys', async () => {
    const { as, key } = await service.account();
    const made = await as.post('/api-keys', { name: '  laptop ' });
    assert.equal(made.status, 201);
    const { raw, ...shown } = made.body;
    assert.match(raw, /^com_[0-9a-f]{48}$/);
    assert.deepEqual(
      { ...shown, id: '', created_at: '' },
      {
        id: '',
        name: 'laptop',
        prefix: `${raw.slice(0, 12)}…`,
        created_at: '',
        last_used_at: null,
        workspace_id: null,
        workspace_name: null,
        manage_keys: false,
        minted_by_key_id: key.id,
      },
    );
    const listed = await as.get('/api-keys');
    assert.deepEqual(listed.body[0], shown, 'newest first');
    assert.equal(listed.body.length, 2);
    assert.ok(!listed.text.includes(raw));
    const other = service.as(raw);
    assert.equal((await other.get('/whoami')).body.key.id, shown.id);
    for (const refused of [await other.get('/api-keys'), await other.post('/api-keys', {})]) {
      assertRefused(refused, 403);
    }
    const plain = await as.send('POST', '/api-keys', { raw: '{}' });
    assert.equal(plain.body.name, null);
  });

  test('wire-account 4: names have at most 60 characters and nothing invisible', async () => {
    const { as } = await service.account();
    for (const name of ['x'.repeat(60), '👩‍💻'.repeat(20), 'a\u200cb', '❤️', 'naïve — key']) {
      assert.equal((await as.post('/api-keys', { name })).status, 201, JSON.stringify(name));
    }
    const bad = [
      '',
      '  ',
      'x'.repeat(61),
      'a\u0000b',
      'a\nb',
      'a\u0085b',
      'a\u202eb',
      'a\u2066b',
      'a\u200bb',
      'a\u00adb',
      'a\ufeffb',
      'a\u2028b',
      '\ud800',
      'a\u{e0041}b',
    ];
    for (const name of bad) assertRefused(await as.post('/api-keys', { name }), 400);
    for (const json of [
      { name: 1 },
      { name: null },
      { workspace_id: 7 },
      { role: 'owner' },
      { manage_keys: 'yes' },
      [],
      null,
    ]) {
      assertRefused(await as.send('POST', '/api-keys', { json }), 400);
    }
    assertRefused(await as.post('/api-keys', { manage_keys: true }), 403);
    assert.equal((await as.get('/api-keys')).body.length, 6);
  });

  test('wire-account 4, Part 5 2: scopes: own by default, a workspace on request, never beyond a confined key’s', async () => {
    const { as, account } = await service.account();
    const [here, there] = [
      (await as.post('/workspaces', { name: 'here' })).body.id,
      (await as.post('/workspaces', { name: 'there' })).body.id,
    ];
    const foreign = await service.account();
    const away = (await foreign.as.post('/workspaces', { name: 'away' })).body.id;
    assert.equal((await as.post('/api-keys', { workspace_id: here })).body.workspace_name, 'here');
    for (const workspace_id of [away, 'wsp-000000000000', 'x', '']) {
      assertRefused(await as.post('/api-keys', { workspace_id }), 404);
    }
    const confined = await service.member(account.id, 'member', {
      workspace: here,
      manageKeys: true,
    });
    assert.equal((await confined.as.post('/api-keys', {})).body.workspace_id, here);
    assert.equal((await confined.as.post('/api-keys', { workspace_id: here })).status, 201);
    for (const workspace_id of [there, away, 'x']) {
      assertRefused(await confined.as.post('/api-keys', { workspace_id }), 403);
    }
    const mine = (await confined.as.get('/api-keys')).body;
    assert.deepEqual(
      new Set(mine.map((key: { workspace_id: string }) => key.workspace_id)),
      new Set([here]),
    );
    assert.equal(mine.length, 3);
  });

  test('wire-account 4: a holder reaches their own keys only; a confined key those of its workspace', async () => {
    const { as, account, key } = await service.account();
    const workspace = (await as.post('/workspaces', { name: 'w' })).body.id;
    const member = await service.member(account.id, 'member', { manageKeys: true });
    const wide = (await member.as.post('/api-keys', {})).body.id;
    const { raw } = await service.operator.createKey({
      account: account.id,
      email: member.email,
      workspace,
      manageKeys: true,
    });
    const confined = service.as(raw);
    for (const id of [key.id, 'key-000000000000', 'x', '%20']) {
      assertRefused(await member.as.delete(`/api-keys/${id}`), 404);
    }
    assertRefused(await confined.delete(`/api-keys/${wide}`), 404);
    assert.deepEqual((await member.as.delete(`/api-keys/${wide}`)).body, { ok: true });
    assertRefused(await member.as.delete(`/api-keys/${wide}`), 404);
    assert.equal((await as.get('/whoami')).status, 200);
  });

  test('wire-account 4: a key may revoke itself, also without managing keys; what it made stays', async () => {
    const { as, account } = await service.account();
    const member = await service.member(account.id, 'member', { manageKeys: true });
    const child = (await member.as.post('/api-keys', {})).body;
    assert.equal((await member.as.delete(`/api-keys/${member.keyId}`)).status, 200);
    assertRefused(await member.as.get('/whoami'), 401, 'revoked');
    const left = service.as(child.raw);
    assert.equal((await left.get('/whoami')).body.key.minted_by_key_id, member.keyId);
    assertRefused(await left.delete('/api-keys/key-000000000000'), 403);
    assert.deepEqual((await left.delete(`/api-keys/${child.id}`)).body, { ok: true });
    assertRefused(await left.get('/whoami'), 401, 'revoked');
    assert.equal((await as.get('/whoami')).status, 200);
  });

  test('Part 5 7: an unverified e-mail makes no keys', async () => {
    const { as, owner } = await service.account();
    await service.operator.setUser(owner, { verified: false });
    const answer = await as.post('/api-keys', {});
    assertRefused(answer, 403);
    assert.match(answer.body.error, /^Verify your email before /);
    assert.equal((await as.get('/api-keys')).status, 200);
    await service.operator.setUser(owner, { verified: true });
    while ((await as.post('/api-keys', {})).status !== 201);
  });

  test('wire-account 4: a person holds at most 500 keys in an account', async () => {
    const { as, account, user } = await service.account();
    await service.database.run(
      {
        name: 'fill-keys',
        text: `INSERT INTO api_keys (id, hash, prefix, account_id, user_id)
          SELECT 'key-' || lpad(to_hex(n), 12, '0'), sha256(n::text::bytea), 'com_…', $1, $2
          FROM generate_series(1, 498) n`,
      },
      [account.id, user.id],
    );
    const answers = await Promise.all(Array.from({ length: 4 }, () => as.post('/api-keys', {})));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 400, 400, 400]);
  });

  test('Part 5 6: evidence holds hashes only, for 90 days and the newest 100,000; then the key is unknown', async () => {
    const { as } = await service.account();
    const keys: { id: string; raw: string }[] = [];
    for (let n = 0; n < 3; n += 1) keys.push((await as.post('/api-keys', {})).body);
    for (const { id } of keys) await as.delete(`/api-keys/${id}`);
    const answer = async (n: number) => (await service.as(keys[n]?.raw).get('/whoami')).body.reason;
    const evidence = await service.database.run<Record<string, unknown>>(
      { name: 'evidence', text: 'SELECT * FROM revoked_keys ORDER BY seq DESC LIMIT 3' },
      [],
    );
    assert.deepEqual(Object.keys(evidence[0] ?? {}).toSorted(), ['hash', 'revoked_at', 'seq']);
    assert.deepEqual(
      evidence.map(({ hash }) => (hash as Buffer).toString('hex')),
      keys.map(({ raw }) => hashKey(raw)).toReversed(),
    );
    assert.deepEqual(
      [await answer(0), await answer(1), await answer(2)],
      ['revoked', 'revoked', 'revoked'],
    );
    await trimRevocationEvidence(service.database, 2, 90);
    assert.deepEqual(
      [await answer(0), await answer(1), await answer(2)],
      ['invalid', 'revoked', 'revoked'],
    );
    await service.database.run(
      {
        name: 'age',
        text: `UPDATE revoked_keys SET revoked_at = now() - interval '90 days' WHERE hash = decode($1, 'hex')`,
      },
      [hashKey(keys[1]?.raw ?? '')],
    );
    assert.equal(await answer(1), 'invalid', 'too old, though not swept yet');
    await trimRevocationEvidence(service.database, 100_000, 90);
    const left = await service.database.run({ name: 'left', text: 'SELECT FROM revoked_keys' }, []);
    assert.equal(left.length, 1);
  });

  test('keys are stored as hashes: no table holds a raw key', async () => {
    const { key } = await service.account();
    const tables = await service.database.run<{ name: string }>(
      {
        name: 'tables',
        text: `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
      },
      [],
    );
    for (const { name } of tables) {
      const found = await service.database.run(
        {
          name: `search ${name}`,
          text: `SELECT FROM ${name} t WHERE t::text LIKE '%' || $1 || '%'`,
        },
        [key.raw.slice(12)],
      );
      assert.equal(found.length, 0, name);
    }
  });
});
