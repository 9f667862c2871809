import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';

suite('secrets', () => {
  let service: TestService;
  before(async () => {
    service = await startService();
  });
  after(() => service.stop());

  const workspace = async (as: Client, name = 'a place') =>
    (await as.post('/workspaces', { name })).body.id as string;
  const create = async (as: Client, name: string, more: object = {}) => {
    const answer = await as.post('/secrets', { name, value: `value of ${name}`, ...more });
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  };

  test('wire-account 3: a secret is answered with every key but its value, and listed oldest first', async () => {
    const { as } = await service.account();
    const made = await create(as, ' \tStripe key \n');
    assert.match(made.id, /^csec-[0-9a-f]{16}$/);
    assert.match(made.revision_id, /^csr-[0-9a-f]{24}$/);
    assert.equal(made.name, 'Stripe key');
    assert.equal(made.workspace_id, null);
    assert.equal(made.last_used_at, null);
    assert.equal(made.updated_at.slice(0, 10), made.created_at.slice(0, 10));
    assert.deepEqual(Object.keys(made), [
      'id',
      'name',
      'workspace_id',
      'revision_id',
      'created_at',
      'updated_at',
      'last_used_at',
    ]);
    const other = await create(as, 'other');
    assert.deepEqual((await as.get('/secrets')).body, {
      secrets: [made, other],
      delivery: false,
      limits: {
        name_max_chars: 60,
        value_max_bytes: 4096,
        active_per_account: 100,
        created_per_account: 1000,
      },
    });
    assert.deepEqual((await as.get(`/secrets/${made.id}`)).body, made);
  });

  test('wire-account 3: a name has 1 to 60 code points after trimming and no control character', async () => {
    const { as } = await service.account();
    for (const name of ['x', 'x'.repeat(60), '🧊'.repeat(60), 'Ünïcode ✓', 'a\u200bb']) {
      assert.equal((await create(as, name)).name, name);
    }
    const controls = [...Array(32).keys(), ...Array.from({ length: 33 }, (_, i) => 0x7f + i)];
    for (const code of controls) {
      const name = `a${String.fromCharCode(code)}b`;
      assertRefused(await as.post('/secrets', { name, value: 'v' }), 400);
    }
    for (const name of ['', '  ', 'x'.repeat(61), '🧊'.repeat(61), 'a\ud800', 7, null, ['a']]) {
      assertRefused(await as.post('/secrets', { name, value: 'v' }), 400);
    }
    assertRefused(await as.post('/secrets', { value: 'v' }), 400);
  });

  test('wire-account 3: a value has 1 to 4096 bytes of UTF-8, and no refusal repeats it', async () => {
    const { as } = await service.account();
    for (const [n, value] of [
      'v',
      'v'.repeat(4096),
      'é'.repeat(2048),
      '\u0000\n',
      '🧊',
    ].entries()) {
      assert.equal((await as.post('/secrets', { name: `${n}`, value })).status, 201);
    }
    for (const value of ['', 'hidden'.repeat(683), `${'é'.repeat(2048)}h`, '\ud800hidden']) {
      const answer = await as.post('/secrets', { name: 'n', value });
      assertRefused(answer, 400);
      assert.match(answer.body.error, /^`value` must /);
      assert.ok(!answer.text.includes('hidden') && !answer.text.includes('é'));
    }
    for (const value of [7, null, ['v'], { v: 1 }, true]) {
      assertRefused(await as.post('/secrets', { name: 'n', value }), 400);
    }
    assertRefused(await as.post('/secrets', { name: 'n', value: 'v', delivery: true }), 400);
  });

  test('wire-account 3: a name is unique in its scope, ignoring the case of A to Z only', async () => {
    const { as } = await service.account();
    const [one, two] = [await workspace(as, 'one'), await workspace(as, 'two')];
    await create(as, 'Key É');
    for (const name of ['Key É', 'KEY É', ' kEy É ']) {
      assertRefused(await as.post('/secrets', { name, value: 'v' }), 409, 'name_taken');
    }
    await create(as, 'Key é');
    // The Kelvin sign is no K.
    await create(as, '\u212aey É');
    for (const workspace_id of [one, two]) {
      await create(as, 'key É', { workspace_id });
      const again = { name: 'KEY É', value: 'v', workspace_id };
      assertRefused(await as.post('/secrets', again), 409, 'name_taken');
    }
    const other = await service.account();
    await create(other.as, 'Key É');
  });

  test('wire-account 3: each scope has its own secrets; an account-wide key names the workspace', async () => {
    const { as } = await service.account();
    const place = await workspace(as);
    const [wide, inside] = [
      await create(as, 'wide', { workspace_id: null }),
      await create(as, 'inside', { workspace_id: place }),
    ];
    assert.equal(inside.workspace_id, place);
    assert.deepEqual((await as.get('/secrets')).body.secrets, [wide]);
    assert.deepEqual((await as.get(`/secrets?workspace_id=${place}`)).body.secrets, [inside]);
    const asked = (id: string, scope = '') => as.get(`/secrets/${id}${scope}`);
    assert.equal((await asked(inside.id, `?workspace_id=${place}`)).status, 200);
    assertRefused(await asked(inside.id), 404);
    assertRefused(await asked(wide.id, `?workspace_id=${place}`), 404);
    const { revision_id } = inside;
    const change = { value: 'new', revision_id };
    assertRefused(await as.put(`/secrets/${inside.id}`, change), 404);
    assertRefused(await as.delete(`/secrets/${inside.id}?revision_id=${revision_id}`), 404);
    const moved = await as.put(`/secrets/${inside.id}`, { ...change, workspace_id: place });
    assert.equal(moved.status, 200);
    const gone = `?revision_id=${moved.body.revision_id}&workspace_id=${place}`;
    assert.deepEqual((await as.delete(`/secrets/${inside.id}${gone}`)).body, { ok: true });
    const stranger = await service.account();
    assertRefused(await stranger.as.get(`/secrets/${wide.id}`), 404);
  });

  test('wire-account 3: a workspace that is none of the account’s is 400 to list and create, 404 to reach', async () => {
    const { as } = await service.account();
    const foreign = await workspace((await service.account()).as);
    const { id, revision_id } = await create(as, 'a');
    for (const place of [foreign, 'wsp-000000000000', 'unassigned', '', 'wsp-%00', '%F0%9F']) {
      assertRefused(await as.get(`/secrets?workspace_id=${place}`), 400);
      assertRefused(await as.get(`/secrets/${id}?workspace_id=${place}`), 404);
      const gone = `?revision_id=${revision_id}&workspace_id=${place}`;
      assertRefused(await as.delete(`/secrets/${id}${gone}`), 404);
      const workspace_id = decodeURIComponent(place.replace('%F0%9F', 'x'));
      assertRefused(await as.post('/secrets', { name: 'b', value: 'v', workspace_id }), 400);
      const change = { value: 'v', revision_id, workspace_id };
      assertRefused(await as.put(`/secrets/${id}`, change), 404);
    }
    for (const path of ['csec-0', 'csec-0000000000000000', 'a%00b']) {
      assertRefused(await as.get(`/secrets/${path}`), 404);
    }
    const twice = `?workspace_id=${foreign}&workspace_id=${foreign}`;
    assertRefused(await as.get(`/secrets${twice}`), 400);
  });

  test('wire-account 3: a confined key works in its workspace, and naming another scope is 403', async () => {
    const { account, as } = await service.account();
    const [home, away] = [await workspace(as, 'home'), await workspace(as, 'away')];
    const owner = await service.member(account.id, 'owner', { workspace: home });
    const wide = await create(as, 'wide');
    const other = await create(as, 'other', { workspace_id: away });
    const own = await create(owner.as, 'own');
    assert.equal(own.workspace_id, home);
    assert.deepEqual((await owner.as.get('/secrets')).body.secrets, [own]);
    assert.deepEqual((await owner.as.get(`/secrets?workspace_id=${home}`)).body.secrets, [own]);
    for (const { id } of [wide, other]) assertRefused(await owner.as.get(`/secrets/${id}`), 404);
    for (const workspace_id of [away, null, 'wsp-000000000000', '']) {
      const { revision_id } = own;
      assertRefused(await owner.as.post('/secrets', { name: 'n', value: 'v', workspace_id }), 403);
      const change = { value: 'v', revision_id, workspace_id };
      assertRefused(await owner.as.put(`/secrets/${own.id}`, change), 403);
      if (workspace_id === null) continue;
      assertRefused(await owner.as.get(`/secrets?workspace_id=${workspace_id}`), 403);
      const query = `?workspace_id=${workspace_id}`;
      assertRefused(await owner.as.get(`/secrets/${own.id}${query}`), 403);
      const gone = `${query}&revision_id=${revision_id}`;
      assertRefused(await owner.as.delete(`/secrets/${own.id}${gone}`), 403);
    }
    const change = { value: 'v', revision_id: own.revision_id };
    assert.equal((await owner.as.put(`/secrets/${own.id}`, change)).status, 200);
  });

  test('wire-account 3: a value is replaced, and a secret deleted, at its present revision only', async () => {
    const { as } = await service.account();
    const made = await create(as, 'a');
    const path = `/secrets/${made.id}`;
    const { body: next } = await as.put(path, { value: 'v2', revision_id: made.revision_id });
    assert.notEqual(next.revision_id, made.revision_id);
    assert.ok(next.updated_at >= made.updated_at);
    assert.deepEqual(
      { ...next, revision_id: '', updated_at: '' },
      { ...made, revision_id: '', updated_at: '' },
    );
    const stale = { value: 'v3', revision_id: made.revision_id };
    assertRefused(await as.put(path, stale), 409, 'stale_revision');
    assertRefused(await as.put(path, { ...stale, revision_id: 'x\0' }), 409, 'stale_revision');
    const old = `?revision_id=${made.revision_id}`;
    assertRefused(await as.delete(path + old), 409, 'stale_revision');
    for (const query of ['', '?revision_id=', '?revision_id=a&revision_id=a']) {
      assertRefused(await as.delete(path + query), 400);
    }
    assertRefused(await as.put(path, { value: 'v' }), 400);
    assertRefused(await as.put(path, { revision_id: next.revision_id }), 400);
    assertRefused(await as.put(path, { ...stale, name: 'b' }), 400);
    assert.deepEqual((await as.get(path)).body, next);
    const gone = `${path}?revision_id=${next.revision_id}`;
    assert.deepEqual((await as.delete(gone)).body, { ok: true });
    assertRefused(await as.delete(gone), 404);
    assertRefused(await as.get(path), 404);
    assertRefused(await as.put(path, { value: 'v', revision_id: next.revision_id }), 404);
    assert.deepEqual((await as.get('/secrets')).body.secrets, []);
    await create(as, 'a');
  });

  test('wire-account 3: of many that replace one revision at once, one does', async () => {
    const { as } = await service.account();
    const { id, revision_id } = await create(as, 'a');
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        as.put(`/secrets/${id}`, { value: `v${n}`, revision_id }),
      ),
    );
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const lost of answers.filter((answer) => answer !== won[0])) {
      assertRefused(lost, 409, 'stale_revision');
    }
    assert.deepEqual((await as.get(`/secrets/${id}`)).body, won[0]?.body);
  });

  test('wire-account 3, Part 8 Sizes: 100 active secrets in all scopes together, 1,000 ever made', async () => {
    const { account, as } = await service.account();
    const workspace_id = await workspace(as);
    await fill(account.id, 98);
    const last = await create(as, 'a', { workspace_id });
    // Many at once never pass the limit.
    const burst = await Promise.all(
      Array.from({ length: 8 }, (_, n) => as.post('/secrets', { name: `b${n}`, value: 'v' })),
    );
    assert.deepEqual(burst.map(({ status }) => status).toSorted(), [201, ...Array(7).fill(400)]);
    const full = await as.post('/secrets', { name: 'c', value: 'v' });
    assertRefused(full, 400);
    assert.match(full.body.error, /at most 100 secrets/);
    assertRefused(
      await as.post('/secrets', { name: 'A', value: 'v', workspace_id }),
      409,
      'name_taken',
    );
    const gone = `?revision_id=${last.revision_id}&workspace_id=${workspace_id}`;
    await as.delete(`/secrets/${last.id}${gone}`);
    await create(as, 'c');
    await service.database.run(eraseAll, [account.id]);
    await fill(account.id, 898);
    await service.database.run(eraseAll, [account.id]);
    await create(as, 'd');
    const over = await as.post('/secrets', { name: 'e', value: 'v' });
    assertRefused(over, 400);
    assert.match(over.body.error, /at most 1000 secrets in all its time/);
  });

  test('Part 4 Workspaces 6, Part 7 Conflicts 4: a workspace with active secrets is not deleted; deleted ones do not block', async () => {
    const { account, as } = await service.account();
    const workspace_id = await workspace(as);
    const confined = await service.member(account.id, 'viewer', { workspace: workspace_id });
    const made = [];
    for (const name of ['a', 'b']) made.push(await create(as, name, { workspace_id }));
    await create(as, 'wide');
    const path = `/workspaces/${workspace_id}`;
    const refused = await as.delete(path);
    assertRefused(refused, 409, 'unsupported');
    assert.match(refused.body.error, /2 secrets/);
    assert.equal((await confined.as.get('/whoami')).status, 200, 'nothing was revoked');
    for (const { id, revision_id } of made) {
      const gone = `?revision_id=${revision_id}&workspace_id=${workspace_id}`;
      assert.equal((await as.delete(`/secrets/${id}${gone}`)).status, 200);
    }
    assert.deepEqual((await as.delete(path)).body, { ok: true, revoked_keys: 1 });
  });

  test('Part 4 Workspaces 8: secrets orphaned by an older deletion are unreachable, and count', async () => {
    const { account, as } = await service.account();
    const workspace_id = await workspace(as);
    const { id, revision_id } = await create(as, 'orphan', { workspace_id });
    await service.database.run(dropWorkspace, [workspace_id]);
    assertRefused(await as.get(`/secrets?workspace_id=${workspace_id}`), 400);
    assertRefused(await as.post('/secrets', { name: 'n', value: 'v', workspace_id }), 400);
    const query = `?workspace_id=${workspace_id}`;
    assertRefused(await as.get(`/secrets/${id}${query}`), 404);
    assertRefused(await as.get(`/secrets/${id}`), 404);
    assertRefused(await as.put(`/secrets/${id}`, { value: 'v', revision_id, workspace_id }), 404);
    assertRefused(await as.delete(`/secrets/${id}${query}&revision_id=${revision_id}`), 404);
    await fill(account.id, 99);
    assertRefused(await as.post('/secrets', { name: 'n', value: 'v' }), 400);
  });

  const fill = (accountId: string, count: number) =>
    service.database.run(fillUp, [accountId, count]);
});

const fillUp = sql(`
  INSERT INTO secrets (id, account_id, name, sealed, revision_id)
  SELECT 'csec-' || left(md5(random()::text || n), 16), $1, 'filler ' || n, '\\x00', 'csr-0'
  FROM generate_series(1, $2::int) n`);
const eraseAll = sql(`
  UPDATE secrets SET name = NULL, sealed = NULL, deleted_at = now() WHERE account_id = $1`);
const dropWorkspace = sql('DELETE FROM workspaces WHERE id = $1');
