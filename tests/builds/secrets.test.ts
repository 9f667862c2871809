import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type Database, sql } from '../../packages/server/db/database.ts';
import { assertRefused } from '../support/assertions.ts';
import { begun, build, built, documentOf, ended, newDocument } from '../support/builds.ts';
import type { Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';

suite('secrets of builds', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  let names = 0;
  async function secret(as: Client, value: string, workspace_id?: string) {
    names += 1;
    const answer = await as.post('/secrets', { name: `s${names}`, value, workspace_id });
    assert.equal(answer.status, 201, answer.text);
    return answer.body as { id: string; revision_id: string; last_used_at: string | null };
  }
  const reading = (account: string, id: string, steps: object[]) =>
    documentOf(account, steps, { secrets: [{ id, as: 'TOKEN' }] });

  test('Part 4 Builds 4: a step finds a secret in its variable, and its value is in no answer', async () => {
    const { account, as } = await service.account();
    const value = 'hunter2-and-more';
    const { id, last_used_at } = await secret(as, value);
    assert.equal(last_used_at, null);
    const steps = [{ run: 'echo the token is $TOKEN\\nexit 1'.replace('\\n', '\n') }];
    const made = await begun(as, reading(account.id, id, steps));
    const told = await ended(as, made.id);
    assert.match(told.error, /the token is \*\*\*/);
    const everything = JSON.stringify([
      told,
      (await as.get('/builds')).body,
      (await as.get(`/builds/${made.id}/events`)).text,
    ]);
    assert.ok(!everything.includes(value));
    assert.notEqual((await as.get(`/secrets/${id}`)).body.last_used_at, null);
    const kept = await tablesOf(service.database);
    assert.ok(!kept.includes(value), 'nor in the database');
  });

  test('Part 4 Builds 6: a rotated secret makes another build, the same revision the same', async () => {
    const { account, as } = await service.account();
    const { id, revision_id } = await secret(as, 'one');
    const document = reading(account.id, id, [{ run: 'echo hello' }]);
    await built(as, document);
    const phaseOf = async () => (await ended(as, (await begun(as, document)).id)).phase;
    assert.equal(await phaseOf(), 'reused');
    const rotated = await as.send('PUT', `/secrets/${id}`, { json: { value: 'two', revision_id } });
    assert.equal(rotated.status, 200);
    assert.equal(await phaseOf(), 'published');
    assert.equal(await phaseOf(), 'reused');
  });

  test('Part 4 Builds 5, Part 4 Builds 4, Part 8 Sizes: references that do not resolve are refused in one way, and others in theirs', async () => {
    const { account, as } = await service.account();
    const other = await service.account();
    const workspace = (await as.post('/workspaces', { name: 'home' })).body.id;
    const deleted = await secret(as, 'gone');
    const erased = await as.delete(`/secrets/${deleted.id}?revision_id=${deleted.revision_id}`);
    assert.equal(erased.status, 200);
    const sentences = new Set<string>();
    for (const { id } of [
      deleted,
      await secret(as, 'confined', workspace),
      await secret(other.as, 'foreign'),
      { id: 'csec-0000000000000000' },
    ]) {
      const refused = await build(as, reading(account.id, id, [{ run: 'true' }]));
      assertRefused(refused, 400);
      sentences.add(refused.body.error);
    }
    assert.equal(sentences.size, 1);
    const malformed = await build(as, reading(account.id, 'hunter2', [{ run: 'true' }]));
    assert.match(malformed.body.problems[0], /^spec.secrets.0.id .*must be the id of a secret/);
    const { id } = await secret(as, 'a\0b');
    const undeliverable = reading(account.id, id, [{ run: 'true' }]);
    assertRefused(await build(as, undeliverable), 409, 'unsupported');
    const { id: good } = await secret(as, 'good');
    const named = (count: number) =>
      newDocument(account.id, {
        secrets: Array.from({ length: count }, (_, n) => ({ id: good, as: `S${n}` })),
      });
    const many = await build(as, named(33));
    assertRefused(many, 400);
    assert.match(many.body.error, /at most 32 /);
    await built(as, named(32));
  });

  test('Part 4 Builds 5: without its keyring a service opens no secret, and builds what needs none', async () => {
    const { account, as, key } = await service.account();
    const { id } = await secret(as, 'value');
    const beside = await service.beside({ CUBICLE_KEYRING: '' });
    try {
      const other = beside.as(key.raw);
      assertRefused(await build(other, reading(account.id, id, [{ run: 'true' }])), 503);
      await built(other, newDocument(account.id));
      await built(as, reading(account.id, id, [{ run: 'true' }]));
    } finally {
      await beside.stop();
    }
  });
});

const listTables = sql(`
  SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`);

async function tablesOf(database: Database): Promise<string> {
  const parts: string[] = [];
  for (const { name } of await database.run<{ name: string }>(listTables, [])) {
    const statement = sql(`SELECT string_agg(t::text, '\n') AS text FROM "${name}" t`);
    parts.push((await database.run<{ text: string }>(statement, []))[0]?.text ?? '');
  }
  return parts.join('\n');
}
