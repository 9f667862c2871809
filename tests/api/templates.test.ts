import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { stringify } from 'yaml';
import { sql } from '../../packages/server/db/database.ts';
import {
  changed,
  gone,
  type Json,
  leastDocument,
  wholeDocument,
} from '../contract/template-corpus.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';

/** Those of the service itself come first. */
const system = ['base', 'tiling', 'agents', 'dev'];

suite('templates', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const send = (as: Client, path: string, document: Json, type?: string): Promise<Answer> =>
    as.send('POST', path, {
      raw: typeof document === 'string' ? document : JSON.stringify(document),
      ...(type !== undefined && { headers: { 'content-type': type } }),
    });
  const validate = (as: Client, document: Json, type?: string) =>
    send(as, '/templates/validate', document, type);
  const publish = (as: Client, document: Json) => send(as, '/templates', document);
  const named = (namespace: string, name: string, version = '1.0.0', spec: object = {}): Json => ({
    ...leastDocument(),
    metadata: { namespace, name, version },
    spec: { os: 'linux', ...spec },
  });

  test('Part 4 Templates, wire-account 1: validate tells the canonical form, digests and row, of JSON and YAML alike', async () => {
    const { as } = await service.account();
    const answers = [];
    for (const type of [
      'application/json',
      'application/yaml',
      'application/octet-stream',
      'text/plain; charset=latin1',
    ]) {
      for (const text of [JSON.stringify(wholeDocument()), stringify(wholeDocument())]) {
        answers.push(await validate(as, text, type));
      }
    }
    answers.push(await as.send('POST', '/templates/validate', { raw: stringify(wholeDocument()) }));
    for (const { status, body } of answers) {
      assert.equal(status, 200);
      assert.deepEqual(body, answers[0]?.body);
    }
    const { canonical, doc_digest, build_digest_needs, ...rest } = answers[0]?.body ?? {};
    assert.deepEqual(JSON.parse(canonical), wholeDocument());
    assert.match(doc_digest, /^sha256:[0-9a-f]{64}$/);
    assert.equal(typeof build_digest_needs, 'string');
    assert.deepEqual(rest, {
      valid: true,
      ref: 'acc-0123456789ab/research@1.2.3',
      template: {
        name: 'research',
        ref: 'acc-0123456789ab/research@1.2.3',
        label: 'Research desktop',
        os: 'linux',
        desktop: 'x11',
        icon: 'flask',
        cpu: 4,
        ram_mb: 4096,
        disk_gb: 20,
      },
    });
    const { body } = await validate(as, leastDocument());
    assert.ok('build_digest' in body && !('build_digest_needs' in body));
    assert.equal(body.template.label, 'least');
  });

  test('Part 4 Templates, wire-account 1: validate is 200 with every problem; an empty body is 400', async () => {
    const { as } = await service.account();
    const document = changed(changed(wholeDocument(), ['spec.os', gone]), ['spec.cpu', 0]);
    assert.deepEqual((await validate(as, document)).body, {
      valid: false,
      problems: ['spec.os is required', 'spec.cpu (line 1) must be at least 1'],
      ref: 'acc-0123456789ab/research@1.2.3',
    });
    const unreadable = await validate(as, 'a: [');
    assert.equal(unreadable.status, 200);
    assert.equal(unreadable.body.valid, false);
    for (const text of ['', ' ', '\n\t \r\n']) {
      assertRefused(await validate(as, text), 400);
      assertRefused(await publish(as, text), 400);
    }
    // Another's namespace, another's family and a taken reference are no matter of its.
    assert.equal((await validate(as, named('system', 'base'))).body.valid, true);
  });

  test('Part 8 Sizes: a document has at most 1 MiB, and a content encoding is none of its', async () => {
    const { as } = await service.account();
    const document = JSON.stringify(leastDocument());
    const full = document + ' '.repeat(1024 * 1024 - document.length);
    assert.equal((await validate(as, full)).body.valid, true);
    for (const path of ['/templates/validate', '/templates']) {
      assertRefused(await send(as, path, `${full} `), 413);
      const headers = { 'content-encoding': 'gzip' };
      assertRefused(await as.send('POST', path, { raw: document, headers }), 400);
    }
  });

  test('wire-account 1: the schema is at its own address', async () => {
    const { as } = await service.account();
    const { body } = await as.get('/templates/schema');
    assert.equal(body.$id, `${service.baseUrl}/templates/schema`);
    assert.equal(body.$schema, 'https://json-schema.org/draft/2020-12/schema');
    assert.deepEqual(body.required, ['apiVersion', 'kind', 'metadata', 'spec']);
    assert.deepEqual(body.properties.spec.required, ['os']);
  });

  test('Part 4 Templates, wire-account 1: what is published is read, listed and never changes', async () => {
    const { account, as } = await service.account();
    const document = named(account.id, 'mine', '1.0.0', { label: 'Mine', cpu: 1, disk_gb: 12 });
    const made = await publish(as, stringify(document));
    assert.equal(made.status, 201, made.text);
    const { published_at, doc_digest, ...rest } = made.body;
    const ref = `${account.id}/mine@1.0.0`;
    const row = {
      name: 'mine',
      ref,
      label: 'Mine',
      os: 'linux',
      cpu: 1,
      ram_mb: 2048,
      disk_gb: 12,
    };
    assert.deepEqual(rest, { ref, document, template: row, versions: ['1.0.0'] });
    assert.equal(doc_digest, (await validate(as, document)).body.doc_digest);
    assert.match(published_at, /Z$/);
    const again = await publish(as, document);
    assert.equal(again.status, 200);
    assert.deepEqual(again.body, made.body);
    assert.deepEqual((await as.get(`/templates/${account.id}/mine`)).body, made.body);
    assert.deepEqual((await as.get(`/templates/${account.id}/mine?version=1.0.0`)).body, made.body);
    assertRefused(await publish(as, changed(document, ['spec.label', 'Other'])), 409);
    const list = (await as.get('/templates')).body;
    assert.deepEqual(list.slice(system.length), [row]);
    const stranger = await service.account();
    assertRefused(await stranger.as.get(`/templates/${account.id}/mine`), 404);
    assert.equal((await stranger.as.get('/templates')).body.length, system.length);
    assertRefused(await stranger.as.delete(`/templates/${account.id}/mine`), 404);
  });

  test('wire-account 1: publishing refuses an invalid document with its problems, and another’s namespace', async () => {
    const { account, as } = await service.account();
    const bad = named(account.id, 'bad', '1.0', { os: 'beos' });
    const refused = await publish(as, bad);
    const { problems } = (await validate(as, bad)).body;
    assert.equal(problems.length, 2);
    assertRefused(refused, 400, undefined, { problems });
    assert.match(refused.body.error, /2 problems/);
    for (const namespace of ['system', 'acc-000000000000', 'x']) {
      assertRefused(await publish(as, named(namespace, 'a')), 403);
    }
    assert.equal((await as.get('/templates')).body.length, system.length);
  });

  test('wire-account 1: without a version the highest one is meant; versions order as numbers', async () => {
    const { account, as } = await service.account();
    const order = ['9.0.0', '10.0.0', '1.10.0', '1.9.0', '1.2.10', '1.2.9'];
    for (const version of order) {
      assert.equal((await publish(as, named(account.id, 'v', version))).status, 201);
    }
    const path = `/templates/${account.id}/v`;
    const { body } = await as.get(path);
    assert.equal(body.ref, `${account.id}/v@10.0.0`);
    const highest = ['10.0.0', '9.0.0', '1.10.0', '1.9.0', '1.2.10', '1.2.9'];
    assert.deepEqual(body.versions, highest);
    const rows = (await as.get('/templates')).body.slice(system.length);
    assert.deepEqual(
      rows.map(({ ref }: { ref: string }) => ref.split('@')[1]),
      highest,
    );
    assert.equal((await as.get(`${path}?version=1.9.0`)).body.ref, `${account.id}/v@1.9.0`);
    assertRefused(await as.get(`${path}?version=1.9.1`), 404);
    for (const version of ['', '1', '1.0', '01.0.0', 'latest', '1.0.0&version=1.0.0', '1.0.%00']) {
      assertRefused(await as.get(`${path}?version=${version}`), 400);
      assertRefused(await as.delete(`${path}?version=${version}`), 400);
    }
    for (const other of [
      `${account.id}/w`,
      `${account.id}/%00`,
      'nobody/v',
      'system/v',
      'system/%F0',
    ]) {
      assertRefused(await as.get(`/templates/${other}`), 404);
      assertRefused(await as.delete(`/templates/${other}`), 404);
    }
  });

  test('wire-account 1: retiring is for good, of one version or of all, and frees no claim', async () => {
    const { account, as } = await service.account();
    const path = `/templates/${account.id}/r`;
    for (const version of ['1.0.0', '1.1.0', '2.0.0'])
      await publish(as, named(account.id, 'r', version));
    await publish(as, named(account.id, 'other'));
    const one = (await as.delete(`${path}?version=2.0.0`)).body;
    assert.match(one.retired_at, /Z$/);
    assert.deepEqual(
      { ...one, retired_at: '' },
      {
        retired: [`${account.id}/r@2.0.0`],
        retired_at: '',
        versions: ['1.1.0', '1.0.0'],
        templates: 3,
        refs_claimed: 4,
      },
    );
    assert.equal((await as.get(path)).body.ref, `${account.id}/r@1.1.0`);
    for (const gone2 of [
      await as.get(`${path}?version=2.0.0`),
      await as.delete(`${path}?version=2.0.0`),
    ]) {
      assertRefused(gone2, 404);
      assert.ok(gone2.body.error.includes(one.retired_at), 'the sentence names the time');
    }
    const back = await publish(as, named(account.id, 'r', '2.0.0'));
    assertRefused(back, 409);
    assert.ok(back.body.error.includes(one.retired_at));
    const all = (await as.delete(path)).body;
    assert.deepEqual(all.retired, [`${account.id}/r@1.1.0`, `${account.id}/r@1.0.0`]);
    assert.deepEqual([all.versions, all.templates, all.refs_claimed], [[], 1, 4]);
    const nothing = await as.get(path);
    assertRefused(nothing, 404);
    assert.ok(nothing.body.error.includes(all.retired_at));
    assertRefused(await as.delete(path), 404);
    assert.deepEqual(
      (await as.get('/templates')).body.map(({ name }: { name: string }) => name),
      [...system, 'other'],
    );
    assert.equal((await publish(as, named(account.id, 'r', '3.0.0'))).status, 201);
  });

  test('wire-account 1: 100 published references, 1,000 claimed ever, however many ask at once', async () => {
    const { account, as } = await service.account();
    await service.database.run(fillUp, [account.id, 1, 98]);
    const burst = await Promise.all(
      Array.from({ length: 6 }, (_, n) => publish(as, named(account.id, `b${n}`))),
    );
    assert.deepEqual(burst.map(({ status }) => status).toSorted(), [201, 201, 409, 409, 409, 409]);
    const full = burst.find(({ status }) => status === 409) as Answer;
    assertRefused(full, 409);
    assert.match(full.body.error, /at most 100 published/);
    const { body } = await as.delete(`/templates/${account.id}/filler`);
    assert.deepEqual([body.retired.length, body.templates, body.refs_claimed], [98, 2, 100]);
    await service.database.run(fillUp, [account.id, 99, 997]);
    await as.delete(`/templates/${account.id}/filler`);
    assert.equal((await publish(as, named(account.id, 'last'))).status, 201);
    const over = await publish(as, named(account.id, 'one-more'));
    assertRefused(over, 409);
    assert.match(over.body.error, /at most 1000 references/);
    assert.equal((await publish(as, named(account.id, 'last'))).status, 200, 'what is there stays');
  });

  test('wire-account 1, Part 5 2: a confined key lists, validates, reads system and creates by reference, no more', async () => {
    const { account, as } = await service.account();
    const workspace = (await as.post('/workspaces', { name: 'w' })).body.id;
    const confined = (await service.member(account.id, 'owner', { workspace })).as;
    await publish(as, named(account.id, 'mine'));
    assert.equal((await confined.get('/templates')).body.length, system.length + 1);
    assert.equal((await validate(confined, leastDocument())).body.valid, true);
    const base = (await confined.get('/templates/system/base')).body;
    assert.equal(base.ref, 'system/base@1.0.0');
    assert.equal(base.published_at, undefined);
    assert.deepEqual(base.versions, ['1.0.0']);
    assert.equal(base.doc_digest, (await validate(as, base.document)).body.doc_digest);
    assertRefused(await confined.get(`/templates/${account.id}/mine`), 403);
    assertRefused(await confined.get('/templates/nobody/nothing'), 403);
    assertRefused(await confined.delete(`/templates/${account.id}/mine`), 403);
    assertRefused(await publish(confined, named(account.id, 'x')), 403);
    // It adds nothing to its parent, so that there is nothing to build.
    const made = await confined.post('/computers', {
      template: `${account.id}/mine`,
      start: false,
    });
    assert.deepEqual([made.status, made.body.template], [201, `${account.id}/mine@1.0.0`]);
    assertRefused(await confined.post('/computers', { template: `${account.id}/none` }), 404);
  });

  test('Part 4 Templates: only what the plan may launch is listed', async () => {
    const { account, as } = await service.account('solo');
    await publish(as, named(account.id, 'small', '1.0.0', { cpu: 4, ram_mb: 8192, disk_gb: 80 }));
    for (const [n, more] of [{ cpu: 5 }, { ram_mb: 8193 }, { disk_gb: 81 }].entries()) {
      await publish(as, named(account.id, `large${n}`, '1.0.0', more));
    }
    const names = async () =>
      (await as.get('/templates')).body.map(({ name }: { name: string }) => name);
    assert.deepEqual(await names(), [...system, 'small']);
    await service.operator.setAccount(account.id, { plan: 'swarm' });
    assert.equal((await names()).length, system.length + 4);
    await service.operator.setAccount(account.id, { plan: 'none' });
    assert.deepEqual(await names(), []);
  });

  test('Part 4 Builds 10, wire-computers 4: a published reference whose image was never built is refused', async () => {
    const { account, as } = await service.account();
    const steps = { from: 'system/base', build: [{ run: 'true' }] };
    const give = (name: string, spec: object) =>
      publish(as, named(account.id, name, '1.0.0', { ...steps, ...spec }));
    await give('own', {});
    await give('family', { family: `golden-${account.id}-x` });
    await give('foreign', { family: `golden-${account.id}x` });
    for (const [template, sentence] of [
      [`${account.id}/own`, /No image was ever built for the family golden-acc-\w{12} /],
      [`${account.id}/own@1.0.0`, /No image was ever built/],
      [`${account.id}/family`, /golden-acc-\w{12}-x /],
      [`${account.id}/foreign`, /may not use the image family/],
    ] as const) {
      const answer = await as.post('/computers', { template });
      assertRefused(answer, 400);
      assert.match(answer.body.error, sentence);
    }
    assertRefused(await as.post('/computers', { template: `${account.id}/own@2.0.0` }), 404);
    await as.delete(`/templates/${account.id}/own`);
    const retired = await as.post('/computers', { template: `${account.id}/own` });
    assertRefused(retired, 404);
    assert.match(retired.body.error, /was retired at/);
    // A short name never means one of the account's.
    const made = await as.post('/computers', { template: 'family', start: false });
    assert.equal(made.body.template, 'base', made.text);
    assert.deepEqual((await as.get('/computers')).body.length, 1, 'nothing else was made');
  });

  test('Part 4 Templates, Part 1 Listings: with a host away the list is short, and an unknown short name is 503', async () => {
    const { as } = await service.account();
    const id = 'host-that-is-away';
    await service.register({
      id,
      address: 'unix:/nowhere/host.sock',
      cpu: 1,
      ram_mb: 1,
      disk_gb: 1,
    });
    try {
      const short = await as.get('/templates');
      assert.equal(short.status, 200);
      assert.equal(short.headers['x-gc-incomplete'], '1');
      assert.equal(short.body[0].name, 'base');
      assertRefused(await as.post('/computers', { template: 'no-such' }), 503);
      assert.deepEqual((await as.get('/computers')).body, []);
      for (const template of ['base', 'system/base', undefined]) {
        assert.equal((await as.post('/computers', { template, start: false })).status, 201);
      }
    } finally {
      await service.operator.retireHost(id);
    }
    const whole = await as.get('/templates');
    assert.equal(whole.headers['x-gc-incomplete'], undefined);
    const made = await as.post('/computers', { template: 'no-such', start: false });
    assert.equal(made.body.template, 'base');
  });
});

const fillUp = sql(`
  INSERT INTO templates (account_id, name, version, document, doc_digest)
  SELECT $1, 'filler', ARRAY[0, 0, n], '{}', 'sha256:0' FROM generate_series($2::int, $3::int) n`);
