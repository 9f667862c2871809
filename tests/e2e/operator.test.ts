import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import { type Ended, type Environment, Ground } from '../support/process.ts';
import { newEmail } from '../support/service.ts';

const accountId = /^acc-[0-9a-f]{12}$/;
const userId = /^usr-[0-9a-f]{16}$/;
const keyId = /^key-[0-9a-f]{12}$/;
const rawKey = /^com_[0-9a-f]{48}$/;

suite('cubicle admin', () => {
  const ground = new Ground();
  let database: TestDatabase;
  let settings: Environment;
  before(async () => {
    database = await makeDatabase();
    settings = { DATABASE_URL: database.url, CUBICLE_DATA: await ground.folder() };
  });
  after(async () => {
    await ground.clear();
    await database.drop();
  });

  const run = (line: string, ...more: string[]): Promise<Ended> =>
    ground.cubicle(['admin', ...line.split(' '), ...more], settings);

  /** What `--json` prints: one object on one line, and not a byte beside it. */
  // eslint-disable-next-line typescript/no-explicit-any -- answers of every shape
  async function json(line: string, ...more: string[]): Promise<any> {
    const { code, stdout, stderr } = await run(line, ...more, '--json');
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
    return oneObject(stdout);
  }

  async function text(line: string, ...more: string[]): Promise<string> {
    const { code, stdout, stderr } = await run(line, ...more);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, stdout);
    assert.doesNotMatch(stdout, /[{}]|undefined|\[object/, 'for a person');
    return stdout;
  }

  test('account create makes an account, its owner and a key', async () => {
    const owner = newEmail();
    const made = await json(`account create --plan solo --owner ${owner}`, '--name', 'Two words');
    assert.deepEqual(shape(made), { account: ['id'], user: ['id'], key: ['id', 'raw'] });
    assert.match(made.account.id, accountId);
    assert.match(made.user.id, userId);
    assert.match(made.key.id, keyId);
    assert.match(made.key.raw, rawKey);
    const lines = await text(`account create --name Text --plan none --owner ${newEmail()}`);
    assert.match(
      lines,
      /^account\.id: acc-\w+\nuser\.id: usr-\w+\nkey\.id: key-\w+\nkey\.raw: com_\w+\n$/,
    );
    const { accounts } = await json('account list');
    const listed = accounts.find(({ id }: { id: string }) => id === made.account.id);
    assert.equal(listed.name, 'Two words');
    assert.equal(listed.plan_id, 'solo');
    assert.equal(listed.suspended, false);
  });

  test('account set changes plan and suspension; account list shows them', async () => {
    const { account } = await json(`account create --name Set --plan solo --owner ${newEmail()}`);
    const set = await json(`account set ${account.id} --plan studio --suspended true`);
    assert.equal(set.account.plan_id, 'studio');
    assert.equal(set.account.suspended, true);
    assert.match(
      await text(`account set ${account.id} --suspended false`),
      /^account\.suspended: (false|no)$/m,
    );
    const table = (await text('account list')).trimEnd().split('\n');
    assert.match(table[0] ?? '', /^id +name +plan_id +suspended +created_at$/);
    assert.ok(
      table.some((row) => new RegExp(`^${account.id} +Set +studio +(false|no) `).test(row)),
    );
  });

  test('member add, set and remove; user set', async () => {
    const { account } = await json(
      `account create --name People --plan solo --owner ${newEmail()}`,
    );
    for (const show of [json, text]) {
      const email = newEmail();
      const of = `--account ${account.id} --email ${email}`;
      const added = await show(`member add ${of} --role viewer`);
      const seated = await show(`member set ${of} --role owner --seat-suspended true`);
      const named = await show(
        `user set --email ${email} --verified false --suspended true --name`,
        'Ada L',
      );
      const removed = await show(`member remove ${of}`);
      if (show === text) {
        assert.match(added, /^user\.id: usr-\w+\nrole: viewer\n$/);
        assert.match(seated, /^role: owner$/m);
        assert.match(named, /^user\.name: Ada L$/m);
        assert.match(removed, /^user\.id: usr-\w+\n$/);
        continue;
      }
      assert.match(added.user.id, userId);
      assert.deepEqual(added, { user: added.user, role: 'viewer' });
      assert.deepEqual(seated, { user: added.user, role: 'owner', seat_suspended: true });
      assert.deepEqual(named, {
        user: { id: added.user.id, email, name: 'Ada L', verified: false, suspended: true },
      });
      assert.deepEqual(removed, { user: added.user });
    }
  });

  test('key create and revoke', async () => {
    const owner = newEmail();
    const { account } = await json(`account create --name Keys --plan solo --owner ${owner}`);
    const of = `--account ${account.id} --email ${owner}`;
    const made = await json(`key create ${of} --manage-keys --name`, 'Deploy key');
    assert.deepEqual(Object.keys(made), ['id', 'raw']);
    assert.match(made.id, keyId);
    assert.match(made.raw, rawKey);
    assert.deepEqual(await json(`key revoke ${made.id}`), { id: made.id });
    const lines = await text(`key create ${of}`);
    assert.match(lines, /^id: key-\w+\nraw: com_\w+\n$/);
    const id = /key-\w+/.exec(lines)?.[0] ?? '';
    assert.equal(await text(`key revoke ${id}`), `id: ${id}\n`);
  });

  test('plan list and set', async () => {
    const { plans } = await json('plan list');
    assert.deepEqual(
      plans.map(({ id, rate_units }: Record<string, unknown>) => [id, rate_units]),
      Object.entries({ none: 1200, solo: 4800, studio: 12000, swarm: 21600 }),
    );
    const { plan } = await json(
      'plan set studio max_computers=7 max_disk_gb=11 --label',
      'Big room',
    );
    assert.deepEqual(plan, { ...plans[2], label: 'Big room', max_computers: 7, max_disk_gb: 11 });
    assert.match(await text('plan set studio max_computers=8'), /^plan\.max_computers: 8$/m);
    const table = (await text('plan list')).trimEnd().split('\n');
    assert.equal(table.length, 5);
    assert.match(table[3] ?? '', /^studio +Big room +12000 +8 /);
  });

  test('a mistake is told in a sentence with exit code 1, as {error} alone with --json', async (t) => {
    const owner = newEmail();
    const { account } = await json(`account create --name Errors --plan solo --owner ${owner}`);
    const of = `--account ${account.id} --email ${owner}`;
    const mistakes: [string, RegExp][] = [
      ['account create --plan solo --owner a@b.c', /--name/],
      ['account create --name x --plan gold --owner a@b.c', /gold.*none, solo, studio, swarm/s],
      ['account create --name x --plan solo --owner nobody', /nobody.*e-mail/s],
      ['account set', /id/],
      [`account set ${account.id}`, /change/],
      ['account set acc-000000000000 --plan solo', /no account acc-000000000000/],
      [`account set ${account.id} --suspended maybe`, /maybe.*true or false/s],
      ['account list --frobnicate', /--frobnicate/],
      ['account frobnicate', /frobnicate/],
      ['frobnicate', /frobnicate/],
      [`member add ${of} --role king`, /king.*viewer, member, owner/s],
      [`member add ${of} --role owner`, /already/],
      [`member set ${of}`, /change/],
      [`member remove --account ${account.id} --email stranger@b.c`, /stranger@b\.c/],
      ['user set --email stranger@b.c --verified true', /stranger@b\.c/],
      [`key create ${of} --workspace wsp-000000000000`, /no workspace wsp-000000000000/],
      [`key create ${of} --name ${'n'.repeat(61)}`, /1 to 60 characters/],
      ['key revoke key-000000000000', /no key key-000000000000/],
      ['plan set gold max_computers=1', /gold/],
      ['plan set solo colour=1', /colour|max_computers/],
      ['plan set solo rate_units=0', /rate_units/],
      ['plan set solo max_computers=99999999999', /max_computers/],
      ['plan set solo', /Say what to change/],
      ['plan set solo max_computers=1=2', /max_computers/],
    ];
    for (const [line, sentence] of mistakes) {
      await t.test(line.replace(account.id, '<account>').replace(owner, '<owner>'), async () => {
        const [told, plain] = await Promise.all([run(line, '--json'), run(line)]);
        assert.deepEqual({ code: told.code, stderr: told.stderr }, { code: 1, stderr: '' });
        const { error, ...rest } = oneObject(told.stdout);
        assert.match(error, sentence);
        assert.deepEqual(rest, {});
        assert.deepEqual({ code: plain.code, stdout: plain.stdout }, { code: 1, stdout: '' });
        assert.match(plain.stderr, sentence);
        assert.doesNotMatch(plain.stderr, /^\s+at |constraint|relation|out of range for type/m);
      });
    }
  });

  test('a wrong setting and a database out of reach are told the same way, without the password', async () => {
    for (const [DATABASE_URL, sentence] of [
      ['mysql://root:hunter2@db/x', /DATABASE_URL must begin/],
      ['postgres://root:hunter2@127.0.0.1:1/x', /database|DATABASE_URL/i],
    ] as const) {
      const [told, plain] = await Promise.all([
        ground.cubicle(['admin', 'plan', 'list', '--json'], { ...settings, DATABASE_URL }),
        ground.cubicle(['admin', 'plan', 'list'], { ...settings, DATABASE_URL }),
      ]);
      assert.deepEqual([told.code, plain.code], [1, 1]);
      assert.match(oneObject(told.stdout).error, sentence);
      assert.match(plain.stderr, sentence);
      assert.doesNotMatch([told, plain].map((r) => r.stdout + r.stderr).join(''), /hunter2/);
    }
  });
});

// eslint-disable-next-line typescript/no-explicit-any -- answers of every shape
function oneObject(stdout: string): any {
  assert.match(stdout, /^\{.*\}\n$/, 'one line with one object');
  return JSON.parse(stdout);
}

function shape(value: Record<string, object>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(value).map(([k, inner]) => [k, Object.keys(inner)]));
}
