import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { stringify } from 'yaml';
import { assertRefused } from '../support/assertions.ts';
import {
  begun,
  build,
  built,
  documentOf,
  ended,
  newDocument,
  progress,
} from '../support/builds.ts';
import { startService, type TestService } from '../support/service.ts';

suite('builds', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  test('Part 2 Build, Part 3 Build: a build runs, and every step of it is told in order', async () => {
    const { account, as } = await service.account();
    const document = documentOf(
      account.id,
      [
        { apt: ['gdb', 'git'] },
        { mkdir: { path: '/srv/data', owner: 'user' } },
        { file: { path: '/etc/motd', content: 'hello' } },
        { env: { A: '1', B: '2' } },
        { run: '#!/bin/bash\n# first\n\necho one\necho two\n' },
      ],
      { env: { EDITOR: 'vim' } },
    );
    const raw = stringify(document);
    const answer = await as.send('POST', '/builds', { raw });
    assert.equal(answer.status, 202, answer.text);
    const { id, started_at, ...rest } = answer.body;
    assert.match(id, /^bld-[0-9a-f]{12}$/);
    assert.deepEqual(rest, { ref: `${account.id}/own@1.0.0`, status: 'running' });
    const { steps, updated_at, ...told } = await ended(as, id);
    assert.deepEqual(told, {
      id,
      status: 'succeeded',
      done: true,
      phase: 'published',
      step: 6,
      of: 6,
      note: told.note,
    });
    assert.deepEqual(
      steps.map(({ n, kind, label, status }: never) => [n, kind, label, status]),
      [
        [1, 'apt', 'gdb git', 'done'],
        [2, 'mkdir', '/srv/data', 'done'],
        [3, 'file', '/etc/motd', 'done'],
        [4, 'env', 'A B', 'done'],
        [5, 'run', 'echo one', 'done'],
        [6, 'finish', 'Finish the image', 'done'],
      ],
    );
    for (const step of steps) assert.ok(step.started_at <= step.finished_at);
    const whole = (await as.get(`/builds/${id}`)).body;
    assert.deepEqual(Object.keys(whole), ['id', 'ref', 'status', 'started_at', 'finished_at']);
    assert.ok(whole.started_at === started_at && whole.finished_at >= started_at);
    assert.ok(updated_at >= started_at);
    assert.deepEqual((await as.get('/builds')).body, [whole]);
    const other = await service.account();
    for (const path of ['', '/progress', '/events']) {
      for (const asked of [id, 'bld-000000000000', 'nonsense']) {
        assertRefused(await other.as.get(`/builds/${asked}${path}`), 404);
      }
    }
    assert.deepEqual((await other.as.get('/builds')).body, []);
  });

  test('Part 2 Build, Part 3 Build: a failed step tells the end of its output, and those behind it are skipped', async () => {
    const { account, as } = await service.account();
    const steps = [{ run: 'echo before\nexit 3' }, { run: 'echo never' }];
    const { id } = await begun(as, documentOf(account.id, steps));
    const told = await ended(as, id);
    assert.deepEqual([told.status, told.phase, told.step], ['failed', 'failed', 1]);
    assert.match(told.error, /before/);
    assert.match(told.note, /exit code 3/);
    assert.deepEqual(
      told.steps.map(({ status }: { status: string }) => status),
      ['failed', 'skipped', 'skipped'],
    );
    const { status, error } = (await as.get(`/builds/${id}`)).body;
    assert.deepEqual([status, error], ['failed', told.error]);
  });

  test('Part 4 Builds 1, Part 4 Builds 2, Part 4 Builds 3: what is no document of the account’s is refused, and tells why', async () => {
    const { account, as } = await service.account();
    const good = newDocument(account.id);
    const invalid = await build(as, { ...good, kind: 'Thing' });
    assertRefused(invalid, 400, undefined, { problems: invalid.body.problems });
    assert.match(invalid.body.problems[0], /^kind /);
    assertRefused(await build(as, ' \n'), 400);
    const layered = await build(as, newDocument(account.id, { from: `${account.id}/own` }));
    assertRefused(layered, 400, undefined, { problems: layered.body.problems });
    assert.match(layered.body.problems[0], /^spec.from .*must name a system template/);
    assertRefused(await build(as, newDocument(account.id, { from: 'system/none' })), 400);
    assertRefused(await build(as, newDocument(account.id, { from: 'system/base@9.0.0' })), 400);
    assertRefused(await build(as, newDocument('acc-000000000000')), 403);
    assertRefused(await build(as, newDocument('system')), 403);
    for (const family of ['golden', `golden-${account.id}x`, 'golden-acc-000000000000']) {
      const refused = await build(as, newDocument(account.id, { family }));
      assertRefused(refused, 403);
      assert.ok(refused.body.error.includes(`${family}.`), refused.text);
    }
    assert.deepEqual((await as.get('/builds')).body, []);
    await built(as, newDocument(account.id, { family: `golden-${account.id}-tools` }));
    await built(as, newDocument(account.id, { family: `golden-${account.id}` }));
    await built(as, newDocument(account.id, { from: 'system/tiling@1.0.0' }));
  });

  test('Part 3 Build, Part 4 Builds 6: the same again reuses the image at once, and anew only where it is asked for', async () => {
    const { account, as } = await service.account();
    const document = newDocument(account.id);
    const first = await built(as, document);
    // What is said of it for people does not change what is made.
    const relabelled = {
      ...document,
      metadata: { ...document.metadata, version: '1.0.1' },
      spec: { ...document.spec, label: 'The same' },
    };
    const { id, status } = await begun(as, relabelled);
    assert.equal(status, 'running');
    const told = await progress(as, id);
    assert.deepEqual([told.status, told.phase, told.done], ['succeeded', 'reused', true]);
    assert.notEqual(id, first.id);
    assert.equal((await begun(as, document, '?no_reuse=1')).status, 'running');
    const anew = await begun(as, document, '?no_reuse=true');
    assert.equal((await ended(as, anew.id)).phase, 'published');
    const other = await service.account();
    const theirs = structuredClone(document);
    theirs.metadata.namespace = other.account.id;
    const { id: foreign } = await begun(other.as, theirs);
    assert.equal((await ended(other.as, foreign)).phase, 'published');
    const listed = (await as.get('/builds')).body;
    assert.deepEqual([listed.length, listed[0].id, listed.at(-1).id], [4, anew.id, first.id]);
  });
});
