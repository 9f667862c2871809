import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import {
  act,
  acted,
  computer,
  finished,
  keyed,
  made,
  operation,
  small,
} from '../support/computers.ts';
import { bind, bound, erased, replaced, secret, type TestSecret } from '../support/secrets.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const undelivered = 'Its secrets could not be delivered.';

suite('secrets delivered to computers', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const faults = () => service.host.engine.faults;
  const asEnv = ({ id }: TestSecret, env = 'A') => [{ secret_id: id, env }];
  const usedAt = async (as: Client, { id }: TestSecret) =>
    (await as.get(`/secrets/${id}`)).body.last_used_at as string | null;

  /** A computer with one secret bound, running. */
  async function given() {
    const { as, account } = await service.account();
    const one = await secret(as);
    const { id } = await made(as, { secrets: asEnv(one) });
    return { as, account, one, id };
  }
  const revision = async (as: Client, id: string, { id: secretId }: TestSecret) =>
    (await computer(as, id)).secrets_applied?.revisions[secretId];
  const follows = (as: Client, id: string, { id: secretId, revision_id }: TestSecret) =>
    until('the computer has the new value', async () => {
      const record = await computer(as, id);
      const there = record.secrets_applied?.revisions[secretId] === revision_id;
      return there && !record.secrets_delivering && record;
    });

  test('wire-computers 2, wire-account 3: a start delivers what is bound, and the record says what and when', async () => {
    const { as } = await service.account();
    const [one, two] = [await secret(as), await secret(as)];
    const answer = await made(as, {
      start: false,
      secrets: [...asEnv(one), { secret_id: two.id, file: 'b' }],
    });
    const group = (record: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(record).filter(([key]) => key.startsWith('secrets')));
    const secrets = [
      { secret_id: one.id, revision_id: one.revision_id, env: 'A' },
      { secret_id: two.id, revision_id: two.revision_id, file: 'b' },
    ];
    const unstarted = {
      secrets,
      secrets_generation: 0,
      secrets_pending: true,
      secrets_delivering: false,
    };
    assert.deepEqual(group(answer), unstarted);
    const { id } = answer;
    assert.deepEqual(group(await computer(as, id)), unstarted);
    assert.equal(await usedAt(as, one), null);
    const next = await replaced(as, two, 'another');
    await acted(as, id, 'start');
    const record = await computer(as, id);
    const { applied_at } = record.secrets_applied;
    assert.match(applied_at, /^\d{4}-.*Z$/);
    const revisions = { [one.id]: one.revision_id, [two.id]: next.revision_id };
    const then = {
      secrets: [secrets[0], { ...secrets[1], revision_id: next.revision_id }],
      secrets_generation: 1,
      secrets_applied: { generation: 1, applied_at, revisions },
      secrets_pending: false,
      secrets_delivering: false,
    };
    assert.deepEqual(group(record), then);
    assert.deepEqual(group((await as.get('/computers')).body[0]), then);
    for (const used of [one, two]) assert.notEqual(await usedAt(as, used), null);
    await acted(as, id, 'stop');
    assert.deepEqual(group(await computer(as, id)), then);
  });

  test('wire-account 3: a start whose delivery fails is stopped, and says so until the next begins', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    faults().put('deliver', 'before');
    const created = await as.post('/computers', { ...small, secrets: asEnv(one) });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.body.start_error, undelivered);
    const { id, status, secrets_error } = created.body.computer;
    assert.deepEqual([status, secrets_error], ['stopped', undelivered]);
    faults().put('deliver', 'before');
    const failed = await act(as, id, 'start');
    const { operation_id } = failed.body;
    assertRefused(failed, 503, undefined, { operation_id });
    const { state, error } = await operation(as, operation_id);
    assert.deepEqual([state, error], ['failed', { code: 'start_failed', message: undelivered }]);
    const record = await computer(as, id);
    assert.deepEqual(
      [record.status, record.running_ram_mb, record.secrets_error, record.secrets_applied],
      ['stopped', 0, undelivered, undefined],
    );
    await acted(as, id, 'start');
    const { secrets_error: none, secrets_generation } = await computer(as, id);
    assert.deepEqual([none, secrets_generation], [undefined, 3]);
    faults().put('deliver', 'before');
    assert.equal((await act(as, id, 'restart')).status, 503);
    assert.equal((await computer(as, id)).status, 'stopped');
  });

  test('wire-computers 2: a start that its host refuses counts no generation and delivers nothing', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    const { id } = await made(as, { start: false, secrets: asEnv(one) });
    faults().put('start', 'before', { kind: 'room' });
    assertRefused(await act(as, id, 'start'), 503);
    const { secrets_generation, secrets_applied } = await computer(as, id);
    assert.deepEqual([secrets_generation, secrets_applied], [0, undefined]);
    assert.equal(await usedAt(as, one), null);
  });

  test('wire-account 3: a replaced value reaches a running computer, after failures too', async () => {
    const { as, one, id } = await given();
    const first = await usedAt(as, one);
    const next = await replaced(as, one, 'second');
    const record = await follows(as, id, next);
    assert.deepEqual([record.secrets_generation, record.secrets_applied.generation], [1, 1]);
    assert.equal(record.secrets[0].revision_id, next.revision_id);
    assert.notEqual(await usedAt(as, one), first);
    faults().put('deliver', 'before');
    const third = await replaced(as, one, 'third');
    assert.equal((await follows(as, id, third)).secrets_pending, false);
    // A changed list waits for a restart, what was in it before does not.
    const two = await secret(as);
    await bound(as, id, [...asEnv(one), ...asEnv(two, 'B')]);
    const fourth = await replaced(as, one, 'fourth');
    const later = await follows(as, id, fourth);
    assert.equal(later.secrets_applied.revisions[two.id], undefined);
    assert.equal(later.secrets_pending, true);
    await acted(as, id, 'restart');
    assert.equal(await revision(as, id, two), two.revision_id);
  });

  test('wire-account 3: what is replaced while it is suspended is there after it is resumed', async () => {
    const { as, one, id } = await given();
    await acted(as, id, 'suspend');
    const next = await replaced(as, one, 'second');
    assert.equal((await computer(as, id)).secrets_pending, true);
    const due = () => service.database.run(isDue, [id]);
    await until('nobody looks at it any more', async () => (await due()).length === 0);
    await acted(as, id, 'start');
    const { secrets_pending, secrets_generation } = await follows(as, id, next);
    assert.deepEqual([secrets_pending, secrets_generation], [false, 1]);
  });

  test('wire-account 3: a deleted secret stays delivered; without its binding removed nothing starts or resumes, and a restart stops', async () => {
    const { as, one, id } = await given();
    const two = await secret(as);
    await bound(as, id, [...asEnv(one), ...asEnv(two, 'B')]);
    await acted(as, id, 'restart');
    await erased(as, one);
    assert.equal(await revision(as, id, one), one.revision_id);
    // The other one is brought all the same.
    await follows(as, id, await replaced(as, two, 'second'));
    assert.equal(await revision(as, id, one), one.revision_id);
    await acted(as, id, 'suspend');
    assertRefused(await act(as, id, 'start'), 409, 'unsupported');
    const wake = await as.post(`/computers/${id}/exec`, { command: 'true' });
    assertRefused(wake, 409, 'unsupported');
    assert.equal((await computer(as, id)).status, 'suspended');
    await bound(as, id, asEnv(two, 'B'));
    await acted(as, id, 'start');
    await acted(as, id, 'restart');

    await erased(as, two);
    const restarted = await act(as, id, 'restart');
    assertRefused(restarted, 503, undefined, { operation_id: restarted.body.operation_id });
    const record = await computer(as, id);
    assert.deepEqual([record.status, record.secrets_error], ['stopped', undelivered]);
    assertRefused(await act(as, id, 'start'), 409, 'unsupported');
    await bound(as, id, []);
    await acted(as, id, 'start');
  });

  test('wire-account 3, wire-computers 5: while something is on its way the list, a suspend and a restart wait', async () => {
    const { as, one, id } = await given();
    await service.database.run(delivering, [id, 'tomorrow']);
    assert.equal((await computer(as, id)).secrets_delivering, true);
    assertRefused(await bind(as, id, asEnv(one, 'B')), 409, 'contention');
    for (const action of ['suspend', 'restart']) {
      assertRefused(await act(as, id, action), 409, 'contention');
    }
    // Its process was gone for good.
    await service.database.run(delivering, [id, 'yesterday']);
    assert.equal((await computer(as, id)).secrets_delivering, false);
    await acted(as, id, 'restart');
  });

  test('wire-computers 9: whoever takes up a start delivers as well', async () => {
    const { as } = await service.account();
    const one = await secret(as);
    for (const fault of ['unheard', 'unasked'] as const) {
      service.host.cable.fault('create', fault);
      const wish = { ...small, secrets: asEnv(one) };
      const lost = await keyed(as, fault, 'POST', '/computers', wish);
      const { operation_id } = lost.body;
      assertRefused(lost, 503, undefined, { operation_id });
      await service.database.run(letGo, [operation_id]);
      const done = await finished(as, operation_id);
      assert.equal(done.state, 'succeeded', fault);
      assert.equal(await revision(as, done.computer_id, one), one.revision_id);
    }
    // A power change without a key is lost at once; what its guest holds is put right.
    const { id } = await made(as, { start: false, secrets: asEnv(one) });
    service.host.cable.fault('start', 'unheard');
    const lost = await act(as, id, 'start');
    assertRefused(lost, 503, undefined, { operation_id: lost.body.operation_id });
    await follows(as, id, one);
  });

  test('wire-account 3: a server that cannot open them starts nothing, and another one can', async () => {
    const { as, account, one } = await given();
    const { id } = await made(as, { start: false, secrets: asEnv(one) });
    const folder = await mkdtemp('/dev/shm/cubicle-keyring-');
    const other = await service.beside({ CUBICLE_KEYRING: join(folder, 'keyring.json') });
    try {
      const { raw } = await service.member(account.id, 'member');
      assertRefused(await act(other.as(raw), id, 'start'), 503);
      const { status, secrets_generation } = await computer(as, id);
      assert.deepEqual([status, secrets_generation], ['stopped', 0]);
      await acted(as, id, 'start');
    } finally {
      await other.stop();
      await rm(folder, { recursive: true });
    }
  });

  test('wire-account 3: commands have them, and a guest that booted by itself gets them again', async (t) => {
    const { as } = await service.account();
    const value = `value-${'x'.repeat(40)}`;
    const one = await secret(as, value);
    const { id } = await made(as, { secrets: asEnv(one) });
    const folder = await mkdtemp('/dev/shm/cubicle-secrets-');
    t.after(() => rm(folder, { recursive: true }));
    // Connects holding nothing.
    await service.host.agentOf(id, { CUBICLE_SECRETS: join(folder, 'held') });
    const read = async () => {
      const { body } = await as.post(`/computers/${id}/exec`, { command: 'printf %s "$A"' });
      return Buffer.from(body.stdout_b64, 'base64').toString();
    };
    await until('the guest has it', async () => (await read()) === value);
    await follows(as, id, await replaced(as, one, 'another'));
    assert.equal(await read(), 'another');
    const { secrets_pending, secrets_generation } = await computer(as, id);
    assert.deepEqual([secrets_pending, secrets_generation], [false, 1]);
  });
});

const delivering = sql(
  'UPDATE computer_secrets SET delivering_until = $2::timestamptz WHERE computer_id = $1',
);
const isDue = sql('SELECT FROM computer_secrets WHERE computer_id = $1 AND due_at IS NOT NULL');
const letGo = sql('UPDATE operations SET held_until = now() WHERE id = $1');
