import assert from 'node:assert/strict';
import { after, before, suite, test, type TestContext } from 'node:test';
import type { Role } from '../../packages/contract/route.ts';
import { Operator } from '../../packages/server/app/operator.ts';
import { Database } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import { Ground, type ServiceProcess } from '../support/process.ts';
import { newEmail } from '../support/service.ts';
import { beginSlowly } from '../support/slow-request.ts';
import { until } from '../support/until.ts';

suite('two processes on one database', () => {
  const ground = new Ground();
  let kept: TestDatabase;
  let database: Database;
  let operator: Operator;
  let a: ServiceProcess;
  let b: ServiceProcess;
  before(async () => {
    kept = await makeDatabase();
    const settings = { DATABASE_URL: kept.url };
    const folders = [await ground.folder(), await ground.folder()] as const;
    [a, b] = await Promise.all([
      ground.start(folders[0], settings),
      ground.start(folders[1], settings),
    ]);
    database = new Database({ connectionString: kept.url }, 2);
    operator = new Operator(database);
  });
  after(async () => {
    await ground.clear();
    await database.close();
    await kept.drop();
  });

  /** Somebody of a new account, besides the owner who can still look afterwards. */
  async function somebody(role: Role) {
    const made = await operator.createAccount({ name: 'Two', plan: 'swarm', owner: newEmail() });
    const account = made.account.id;
    const email = newEmail();
    await operator.addMember({ account, email, role });
    const key = await operator.createKey({ account, email, manageKeys: true });
    return { account, email, key, owner: a.as(made.key.raw) };
  }

  test('two services that start at once make one first account', async () => {
    const showing = [a, b].filter(({ stdout }) => stdout.includes('com_'));
    assert.equal(showing.length, 1);
    const { key, account_id } = (showing[0] as ServiceProcess).firstKey();
    for (const service of [a, b]) {
      assert.equal((await service.as(key).get('/whoami')).body.account.id, account_id);
    }
    assert.deepEqual(
      (await operator.listAccounts()).map(({ id }) => id),
      [account_id],
    );
  });

  interface Loss {
    readonly change: (who: {
      account: string;
      email: string;
      key: { id: string };
    }) => Promise<unknown>;
    readonly status: 401 | 403;
    /** A call that the other process refuses at its door, once it has heard. */
    readonly refused: (as: Client) => Promise<Answer>;
    /** Of that refusal. A write under way is always refused with `revoked`. */
    readonly reason: 'revoked' | undefined;
  }
  const read = (as: Client) => as.get('/workspaces');
  const losses: Record<string, Loss> = {
    'a lowered role': {
      change: ({ account, email }) => operator.setMember(account, email, { role: 'viewer' }),
      status: 403,
      // Readable by every role, so a read does not tell.
      refused: (as) => as.post('/workspaces', { name: 'there' }),
      reason: undefined,
    },
    'a revoked key': {
      change: ({ key }) => operator.revokeKey(key.id),
      status: 401,
      refused: read,
      reason: 'revoked',
    },
    'a removed member': {
      change: ({ account, email }) => operator.removeMember(account, email),
      status: 403,
      refused: read,
      reason: 'revoked',
    },
    'a suspended seat': {
      change: ({ account, email }) => operator.setMember(account, email, { seatSuspended: true }),
      status: 403,
      refused: read,
      reason: 'revoked',
    },
    'a suspended person': {
      change: ({ email }) => operator.setUser(email, { suspended: true }),
      status: 403,
      refused: read,
      reason: 'revoked',
    },
    'a suspended account': {
      change: ({ account }) => operator.setAccount(account, { suspended: true }),
      status: 403,
      refused: read,
      reason: 'revoked',
    },
  };

  test('Part 5 3, Part 5 6, Part 5 7: authority lost in flight refuses a write, which then writes nothing', async (t) => {
    for (const [name, { change, status }] of Object.entries(losses)) {
      await t.test(name, async () => {
        const who = await somebody('owner');
        const { id } = (await who.owner.post('/workspaces', { name: 'there' })).body;
        const begin = (method: 'POST' | 'PATCH', path: string, json: unknown) =>
          beginSlowly(b.baseUrl + path, who.key.raw, { method, json });
        const underWay = await Promise.all([
          begin('POST', '/workspaces', { name: 'half way' }),
          begin('PATCH', `/workspaces/${id}`, { name: 'renamed half way' }),
          begin('POST', '/api-keys', { name: 'half way' }),
        ]);
        await change(who);
        for (const request of underWay) assertRefused(await request.finish(), status, 'revoked');
        assert.deepEqual(await namesIn('workspaces', who.account), ['there']);
        assert.ok(!(await namesIn('api_keys', who.account)).includes('half way'));
      });
    }
  });

  test('Part 5 3, Part 5 6, Part 5 7: authority lost through one process is refused by the other', async (t) => {
    for (const [name, { change, status, refused, reason }] of Object.entries(losses)) {
      await t.test(name, async (subtest) => {
        const delays: number[] = [];
        for (let round = 0; round < 3; round += 1) {
          const who = await somebody('owner');
          const as = b.as(who.key.raw);
          assert.equal((await as.post('/workspaces', { name: 'there' })).status, 200);
          const call = () => refused(as);
          for (let i = 0; i < 5; i += 1) assert.notEqual((await call()).status, status);
          await change(who);
          delays.push(await refusalDelay(call, status, reason));
          for (let i = 0; i < 10; i += 1) assertRefused(await call(), status, reason);
        }
        tell(subtest, delays);
      });
    }
  });

  async function namesIn(table: 'workspaces' | 'api_keys', account: string) {
    const text = `SELECT name FROM ${table} WHERE account_id = $1`;
    const rows = await database.run<{ name: string }>({ name: table, text }, [account]);
    return rows.map((row) => row.name);
  }

  test('wire-account 4: a key revoked at one process is refused by the other', async (t) => {
    const delays: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const who = await somebody('member');
      const made = (await a.as(who.key.raw).post('/api-keys', {})).body;
      const call = () => b.as(made.raw).get('/workspaces');
      for (let i = 0; i < 5; i += 1) assert.equal((await call()).status, 200);
      assert.equal((await a.as(who.key.raw).delete(`/api-keys/${made.id}`)).status, 200);
      delays.push(await refusalDelay(call, 401, 'revoked'));
      for (let i = 0; i < 10; i += 1) assertRefused(await call(), 401, 'revoked');
    }
    tell(t, delays);
  });

  test('Part 4 Workspaces 5: a workspace deleted at one process revokes its keys at the other', async (t) => {
    const { account, email, owner } = await somebody('member');
    const { id } = (await owner.post('/workspaces', { name: 'shared' })).body;
    const keys: Client[] = [];
    for (let i = 0; i < 3; i += 1) {
      const { raw } = await operator.createKey({
        account,
        email,
        workspace: id,
        manageKeys: false,
      });
      keys.push(b.as(raw));
    }
    for (const key of keys) assert.equal((await key.get('/workspaces')).body.length, 1);
    const deleted = await owner.delete(`/workspaces/${id}`);
    assert.deepEqual(deleted.body, { ok: true, revoked_keys: 3 });
    const delays = await Promise.all(
      keys.map((key) => refusalDelay(() => key.get('/workspaces'), 401, 'revoked')),
    );
    for (const key of keys) assertRefused(await key.get('/whoami'), 401, 'revoked');
    tell(t, delays);
  });

  test('Part 4 Workspaces 1: two creates of one name at two processes give one 200 and one 400', async () => {
    const { key } = await somebody('owner');
    const [atA, atB] = [a.as(key.raw), b.as(key.raw)];
    for (let round = 0; round < 20; round += 1) {
      const name = `race ${round}`;
      const answers = await Promise.all([
        atA.post('/workspaces', { name }),
        atB.post('/workspaces', { name }),
      ]);
      const [won, lost] = answers[0].status === 200 ? answers : answers.toReversed();
      assert.equal(won?.status, 200);
      assertRefused(lost as Answer, 400);
      assert.deepEqual((await atB.get(`/workspaces/${won?.body.id}`)).body, won?.body);
    }
    assert.equal((await atB.get('/workspaces')).body.length, 20);
  });

  test('Part 4 Workspaces 1, Part 8 Sizes: the 501st workspace never comes, whichever process is asked', async () => {
    const { account, key } = await somebody('owner');
    const fill = `INSERT INTO workspaces (id, account_id, name)
      SELECT 'wsp-' || lpad(to_hex(n), 12, '0'), $1, 'n' || n FROM generate_series(1, 490) n`;
    await database.run({ name: 'fill', text: fill }, [account]);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        (n % 2 === 0 ? a : b).as(key.raw).post('/workspaces', { name: `burst ${n}` }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 10);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      assertRefused(answer, 400);
      assert.match(answer.body.error, /500/);
    }
    assert.equal((await b.as(key.raw).get('/workspaces')).body.length, 500);
  });
});

/** From the change to the sending of the first call that is refused at the door. */
async function refusalDelay(
  call: () => Promise<Answer>,
  status: number,
  reason: string | undefined,
): Promise<number> {
  const changedAt = performance.now();
  return until('the other process refuses', async () => {
    const sentAt = performance.now();
    const answer = await call();
    return answer.status === status && answer.body.reason === reason
      ? sentAt - changedAt
      : undefined;
  });
}

function tell(t: TestContext, delays: readonly number[]): void {
  t.diagnostic(`refused after ${delays.map((ms) => ms.toFixed(1)).join(', ')} ms`);
}
