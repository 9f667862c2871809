import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { Operator } from '../../packages/server/app/operator.ts';
import { Database } from '../../packages/server/db/database.ts';
import { assertMetered, assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import {
  databaseProcesses,
  type Environment,
  Ground,
  type ServiceProcess,
} from '../support/process.ts';
import { newEmail } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The operator's command with `--json`; fails the test when it fails. */
// eslint-disable-next-line typescript/no-explicit-any -- answers of every shape
type Admin = (line: string) => Promise<any>;

function adminOn(ground: Ground, settings: Environment): Admin {
  return async (line) => {
    const { code, stdout, stderr } = await ground.cubicle(
      ['admin', ...line.split(' '), '--json'],
      settings,
    );
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^\{.*\}\n$/);
    return JSON.parse(stdout);
  };
}

const seen = (what: string, ask: () => Promise<Answer>, status: number) =>
  until(what, async () => {
    const answer = await ask();
    return answer.status === status ? answer : undefined;
  });

suite('what the operator changes is seen by a running service', () => {
  const ground = new Ground();
  let database: TestDatabase;
  let service: ServiceProcess;
  let admin: Admin;
  // What a test begins with is made without the command, which takes a second each time.
  let store: Database;
  let operator: Operator;
  before(async () => {
    database = await makeDatabase();
    store = new Database({ connectionString: database.url }, 2);
    operator = new Operator(store);
    const settings = { DATABASE_URL: database.url };
    const folder = await ground.folder();
    service = await ground.start(folder, settings);
    admin = adminOn(ground, { ...settings, CUBICLE_DATA: folder });
  });
  after(async () => {
    await ground.clear();
    await store.close();
    await database.drop();
  });

  async function newAccount(plan = 'swarm') {
    const owner = newEmail();
    const { account, key } = await operator.createAccount({ name: 'Tests', plan, owner });
    return { id: account.id, owner, keyId: key.id, as: service.as(key.raw) };
  }

  async function newOwner(account: string): Promise<{ email: string; as: Client }> {
    const email = newEmail();
    await operator.addMember({ account, email, role: 'owner' });
    const { raw } = await operator.createKey({ account, email, manageKeys: true });
    return { email, as: service.as(raw) };
  }

  test('Part 5 7, Part 4 Account: a suspended account is 403 revoked but for GET /account and /whoami', async () => {
    const { id, as } = await newAccount();
    const workspace = (await as.post('/workspaces', { name: 'before' })).body.id;
    await admin(`account set ${id} --suspended true`);
    await seen('the suspension holds', () => as.get('/workspaces'), 403);
    for (const answer of [
      await as.get('/workspaces'),
      await as.get(`/workspaces/${workspace}`),
      await as.get(`/workspaces/${workspace}/members`),
      await as.get('/api-keys'),
      await as.post('/workspaces', { name: 'during' }),
      await as.patch(`/workspaces/${workspace}`, { name: 'during' }),
      await as.delete(`/workspaces/${workspace}`),
      await as.post('/api-keys', {}),
    ]) {
      assertRefused(answer, 403, 'revoked');
      assertMetered(answer);
    }
    assert.equal((await as.get('/account')).status, 200);
    assert.equal((await as.get('/whoami')).body.account.status, 'suspended');
    await admin(`account set ${id} --suspended false`);
    await seen('the account is back', () => as.get('/workspaces'), 200);
    assert.equal((await as.get(`/workspaces/${workspace}`)).body.name, 'before');
  });

  test('Part 5 3: a lowered role is 403 without a reason on owner routes, a raised one passes', async () => {
    const { id } = await newAccount();
    const { email, as } = await newOwner(id);
    assert.equal((await as.post('/workspaces', { name: 'as owner' })).status, 200);
    await admin(`member set --account ${id} --email ${email} --role viewer`);
    const refused = await seen(
      'the role is lower',
      () => as.post('/workspaces', { name: 'x' }),
      403,
    );
    assertRefused(refused, 403);
    assertMetered(refused);
    assert.equal((await as.get('/workspaces')).status, 200);
    await admin(`member set --account ${id} --email ${email} --role owner`);
    await seen('the role is higher', () => as.post('/workspaces', { name: 'again' }), 200);
  });

  test('Part 5 7: removed members, suspended people and suspended seats are 403 revoked everywhere', async () => {
    const { id } = await newAccount();
    const { email, as } = await newOwner(id);
    const of = `--account ${id} --email ${email}`;
    for (const [away, back] of [
      [`member set ${of} --seat-suspended true`, `member set ${of} --seat-suspended false`],
      [`user set --email ${email} --suspended true`, `user set --email ${email} --suspended false`],
      [`member remove ${of}`, `member add ${of} --role owner`],
    ] as const) {
      assert.equal((await as.get('/whoami')).status, 200);
      await admin(away);
      await seen(away, () => as.get('/whoami'), 403);
      for (const path of ['/whoami', '/account', '/workspaces', '/api-keys']) {
        assertRefused(await as.get(path), 403, 'revoked');
      }
      assertRefused(await as.post('/workspaces', { name: 'gone' }), 403, 'revoked');
      await admin(back);
      await seen(back, () => as.get('/whoami'), 200);
    }
  });

  test('Part 5 7: an unverified holder makes no key and is told to verify first', async () => {
    const { as, owner } = await newAccount();
    await admin(`user set --email ${owner} --verified false`);
    const refused = await seen('the address is unverified', () => as.post('/api-keys', {}), 403);
    assertRefused(refused, 403);
    assert.match(refused.body.error, /^Verify your email before /);
    assert.equal((await as.post('/workspaces', { name: 'may' })).status, 200);
    await admin(`user set --email ${owner} --verified true`);
    await seen('the address is verified', () => as.post('/api-keys', {}), 201);
  });

  test('Part 5 6: a revoked key is 401 revoked', async () => {
    const { keyId, as } = await newAccount();
    assert.equal((await as.get('/whoami')).status, 200);
    await admin(`key revoke ${keyId}`);
    const refused = await seen('the key is revoked', () => as.get('/whoami'), 401);
    assertRefused(refused, 401, 'revoked');
    assert.equal(refused.headers['www-authenticate'], 'Bearer error=invalid_token');
  });

  test('Part 8 Rate: another plan is another budget', async () => {
    const { id, as } = await newAccount('solo');
    const limit = async () => assertMetered(await as.get('/whoami')).limit;
    assert.equal(await limit(), 2400);
    for (const [plan, half] of Object.entries({ none: 600, studio: 6000, swarm: 10800 })) {
      await admin(`account set ${id} --plan ${plan}`);
      await until(`the budget is that of ${plan}`, async () => (await limit()) === half);
    }
  });

  test('changed figures of a plan are in GET /account and in the budget', async () => {
    const { as } = await newAccount('studio');
    const old = (await as.get('/account')).body;
    await admin('plan set studio max_computers=3 ram_pool_mb=4096 max_vcpu=1 rate_units=5000');
    const now = await until('the figures are new', async () => {
      const { body, headers } = await as.get('/account');
      return headers['ratelimit-limit'] === '2500' ? body : undefined;
    });
    assert.deepEqual(now.limits, { ...old.limits, max_computers: 3, ram_pool_mb: 4096 });
    assert.deepEqual(now.per_computer, { ...old.per_computer, max_vcpu: 1 });
    assert.equal(now.remaining.kept_computers, 3);
  });

  test('Part 5 2: a key made for a workspace is confined to it', async () => {
    const { id, owner, as } = await newAccount();
    const workspace = (await as.post('/workspaces', { name: 'confining' })).body.id;
    const { raw } = await admin(
      `key create --account ${id} --email ${owner} --workspace ${workspace}`,
    );
    assert.equal((await service.as(raw).get('/whoami')).body.workspace.id, workspace);
    assertRefused(await service.as(raw).post('/workspaces', { name: 'wider' }), 403);
  });
});

suite('the operator and an embedded database', () => {
  test('without a service the command runs the database itself, and the service finds what it did', async (t) => {
    const ground = Ground.of(t);
    const folder = await ground.folder();
    const admin = adminOn(ground, { CUBICLE_DATA: folder });
    const owner = newEmail();
    const { account, key } = await admin(
      `account create --name Early --plan solo --owner ${owner}`,
    );
    assert.deepEqual(databaseProcesses(folder), []);
    await admin(`user set --email ${owner} --verified false`);
    const { accounts } = await admin('account list');
    assert.deepEqual(databaseProcesses(folder), []);
    assert.equal(accounts.length, 1);

    const service = await ground.start(folder);
    assert.doesNotMatch(service.stdout, /com_/, 'it has an account already');
    const as = service.as(key.raw);
    assert.equal((await as.get('/whoami')).body.account.id, account.id);
    assertRefused(await as.post('/api-keys', {}), 403);

    // Beside a service the command uses the service's database and leaves it alone.
    await admin(`user set --email ${owner} --verified true`);
    await seen('the address is verified', () => as.post('/api-keys', {}), 201);
    assert.equal((await service.health()).status, 200);
    await service.stop();
    assert.deepEqual(databaseProcesses(folder), []);
    assert.equal((await admin('account list')).accounts.length, 1);
  });

  test('several commands at once without a service all succeed and leave no process', async (t) => {
    const ground = Ground.of(t);
    const folder = await ground.folder();
    const admin = adminOn(ground, { CUBICLE_DATA: folder });
    const made = await Promise.all(
      Array.from({ length: 4 }, () =>
        admin(`account create --name Rush --plan none --owner ${newEmail()}`),
      ),
    );
    assert.equal((await admin('account list')).accounts.length, made.length);
    await until('no process is left', () => databaseProcesses(folder).length === 0);
  });
});
