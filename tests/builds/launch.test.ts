import assert from 'node:assert/strict';
import { after, afterEach, before, suite, test } from 'node:test';
import { BuildFollower } from '../../packages/server/app/build-follower.ts';
import { BuildOrders } from '../../packages/server/app/build-orders.ts';
import { SystemBuilds } from '../../packages/server/app/system-builds.ts';
import { makingOf } from '../../packages/server/db/builds.ts';
import { type Runner, sql } from '../../packages/server/db/database.ts';
import { Fleet } from '../../packages/server/hosts/fleet.ts';
import { localToken } from '../../packages/server/hosts/token.ts';
import { assertRefused } from '../support/assertions.ts';
import { begun, built, endSlowly, newDocument, publish, slowDocument } from '../support/builds.ts';
import { small } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

suite('computers from builds', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  afterEach(() => endSlowly(service));
  after(() => service.stop());

  test('Part 4 Builds 10, wire-computers 4: a published document is launched from the newest image of that very document', async () => {
    const { account, as } = await service.account();
    const spec = { cpu: 3, ram_mb: 1_024, disk_gb: 20, env: { EDITOR: 'vim' } };
    const document = newDocument(account.id, spec);
    const first = await built(as, document);
    const second = await built(as, document, '?no_reuse=true');
    assert.equal((await publish(as, document)).status, 201);
    const template = `${account.id}/own`;
    const made = await as.post('/computers', { template, start: false, disk_gb: 5 });
    assert.equal(made.status, 201, made.text);
    const { cpu, ram_mb, disk_gb } = made.body;
    assert.deepEqual([cpu, ram_mb, disk_gb], [3, 1_024, 20]);
    assert.equal(made.body.template, `${template}@1.0.0`);
    assert.equal(await buildOf(made.body.id), second.id);
    assert.notEqual(first.id, second.id);
    // A clone is of the same image.
    const clone = await as.post(`/computers/${made.body.id}/clone`, {});
    assert.equal(clone.body.template, `${template}@1.0.0`);
    assert.equal(await buildOf(clone.body.id), second.id);
    // Another version of the document has another image, or none.
    const next = structuredClone(document);
    next.metadata.version = '1.1.0';
    next.spec.build.push({ run: 'echo more' });
    assert.equal((await publish(as, next)).status, 201);
    assertRefused(await as.post('/computers', { template, start: false }), 409);
    const pinned = { template: `${template}@1.0.0`, start: false, ...small };
    assert.equal((await as.post('/computers', pinned)).status, 201);
  });

  test('Part 4 Builds 10, wire-account 1: while the image is being made a create waits for it, by what it was given', async () => {
    const { account, as } = await service.account();
    const document = slowDocument(account.id);
    assert.equal((await publish(as, document)).status, 201);
    const wish = { ...small, template: `${account.id}/own@1.0.0`, start: false };
    assertRefused(await as.post('/computers', wish), 400);
    const { id } = await begun(as, document);
    const waits = await as.post('/computers', wish);
    const { template_transfer } = waits.body;
    assertRefused(waits, 409, undefined, {
      code: 'template_image_preparing',
      template_transfer,
      preparation: { state: 'preparing', error: '' },
    });
    assert.match(waits.headers['retry-after'] ?? '', /^\d+$/);
    assertRefused(await as.post('/computers', { ...wish, template_transfer: 'another' }), 404);
    await service.database.run(succeed, [id]);
    const absent = await as.post('/computers', { ...wish, template_transfer });
    assertRefused(absent, 409);
    assert.match(absent.body.error, /No image of this template is held/);
  });

  test('Part 4 Builds 10, wire-computers 4: a document that adds nothing is launched as its parent is', async () => {
    const { account, as } = await service.account();
    const plain = (name: string, spec: object) => ({
      apiVersion: 'cubicle/v1',
      kind: 'Template',
      metadata: { namespace: account.id, name, version: '1.0.0' },
      spec: { os: 'linux', ...spec },
    });
    const own = newDocument(account.id);
    const { id } = await built(as, own);
    await publish(as, own);
    await publish(as, plain('larger', { from: `${account.id}/own`, cpu: 4 }));
    await publish(as, plain('tiled', { from: 'system/tiling' }));
    await publish(as, plain('circle', { from: `${account.id}/circle` }));
    const create = (name: string) =>
      as.post('/computers', { template: `${account.id}/${name}`, start: false });
    const { body: larger } = await create('larger');
    assert.deepEqual([larger.cpu, await buildOf(larger.id)], [4, id]);
    const { body: tiled } = await create('tiled');
    assert.deepEqual([tiled.desktop, await buildOf(tiled.id)], ['wayland', null]);
    assertRefused(await create('circle'), 404);
  });

  test('Part 4 Templates, wire-computers 4: a template of the service’s is built when it is first wanted, once for all', async () => {
    const { as } = await service.account();
    const other = await service.account();
    const listed = (await as.get('/templates')).body;
    assert.deepEqual(
      listed.find(({ name }: { name: string }) => name === 'dev').ref,
      'system/dev@1.0.0',
    );
    const wish = { ...small, template: 'dev', start: false };
    const waits = await as.post('/computers', wish);
    assert.equal(waits.body.code, 'template_image_preparing', waits.text);
    await until('there is a computer', async () => {
      const { template_transfer } = waits.body;
      const made = await as.post('/computers', { ...wish, template_transfer });
      return made.status === 201 && made.body.template === 'dev';
    });
    assert.equal((await other.as.post('/computers', wish)).status, 201);
    assert.equal((await service.database.run(systemBuilds, [])).length, 1);
    assert.deepEqual((await as.get('/builds')).body, [], 'it is nobody’s build');
    // And one can be built upon.
    const { account, as: third } = await service.account();
    const upon = await built(third, newDocument(account.id, { from: 'system/dev' }));
    const told = (await third.get(`/builds/${upon.id}/progress`)).body;
    assert.match(told.steps[0].label, /build-essential/);
  });

  test('a build that ends while its image is looked for is found', async () => {
    const { account, as } = await service.account();
    const document = slowDocument(account.id);
    const { id } = await begun(as, document);
    const { database } = service;
    const [{ doc_digest: digest } = { doc_digest: '' }] = await database.run<{
      doc_digest: string;
    }>(digestOf, [id]);
    let asked = 0;
    const between: Runner = {
      run: async (...query) => {
        asked += 1;
        if (asked === 2) await database.run(succeed, [id]);
        return await database.run(...query);
      },
    };
    const { latest, image } = await makingOf(between, account.id, digest);
    assert.deepEqual([asked, latest?.status, image?.image_id], [2, 'running', id]);
  });

  test('an image of the service’s whose parent has a new one is built anew, and serves until then', async () => {
    const { database } = service;
    const fleet = new Fleet(database, localToken);
    const follower = new BuildFollower(database, fleet, () => {});
    const system = new SystemBuilds(database, new BuildOrders(database, fleet), follower);
    const { as } = await service.account();
    const wish = { ...small, template: 'agents', start: false };
    const created = async () => (await as.post('/computers', wish)).body.id as string | undefined;
    const first = await buildOf(await until('it is built', created));
    await system.renew();
    await until('nothing is built', async () => (await database.run(running, [])).length === 0);
    assert.equal(await buildOf((await created()) ?? ''), first, 'it is of today’s parent');
    await database.run(ageBuild, [first]);
    await system.renew();
    assert.equal(typeof (await created()), 'string', 'nobody waits');
    const another = async () => (await database.run(newer, [first])).length === 1;
    await until('there is another', another);
    const later = await created();
    assert.ok(later);
    assert.notEqual(await buildOf(later), first);
    await follower.stop();
  });

  test('Part 4 Builds 10: an image that its host has lost is no longer promised', async () => {
    const { account, as } = await service.account();
    const document = newDocument(account.id);
    const { id } = await built(as, document);
    await publish(as, document);
    await service.host.near.removeBuild(id, 30_000);
    const wish = { ...small, template: `${account.id}/own`, start: false };
    assertRefused(await as.post('/computers', wish), 409);
    assert.deepEqual((await as.get('/builds')).body, []);
    await built(as, document);
    assert.equal((await as.post('/computers', wish)).status, 201);
  });

  async function buildOf(computer: string): Promise<string | null | undefined> {
    const rows = await service.database.run<{ build_id: string | null }>(buildIds, [computer]);
    return rows[0]?.build_id;
  }
});

const running = sql(`SELECT FROM builds WHERE status = 'running'`);
// As if its parent's image had been another one.
const ageBuild = sql(`UPDATE builds SET build_key = 'of before' WHERE id = $1`);
const newer = sql(`
  SELECT FROM builds b JOIN builds old USING (doc_digest)
  WHERE old.id = $1 AND b.seq > old.seq AND b.status = 'succeeded'`);
const digestOf = sql('SELECT doc_digest FROM builds WHERE id = $1');
const buildIds = sql('SELECT build_id FROM computers WHERE id = $1');
const systemBuilds = sql('SELECT FROM builds WHERE account_id IS NULL');
// As if it had come to a good end, with an image that its host does not have.
const succeed = sql(`
  UPDATE builds SET status = 'succeeded', image_id = id, kept_at = now(), finished_at = now()
  WHERE id = $1`);
