import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { Database, sql } from '../../packages/server/db/database.ts';
import { aboutSecret } from '../../packages/server/db/sealed-values.ts';
import { Keyring, keyIdOf } from '../../packages/server/keyring.ts';
import { assertRefused } from '../support/assertions.ts';
import { makeDatabase } from '../support/database.ts';
import { Ground } from '../support/process.ts';
import { until } from '../support/until.ts';

const value = (n: number) => `pass-phrase-${n}-correct-horse-battery-staple-${n}`.repeat(20);
const values = Array.from({ length: 6 }, (_, n) => value(n));
/** As text, and as the two ways in which bytes are written down. */
const traces = values
  .map((text) => text.slice(0, 45))
  .flatMap((text) => [text, hex(text), Buffer.from(text).toString('base64').slice(0, 56)]);

suite('secrets at rest', () => {
  test('wire-account 3: a value is nowhere in the data folder, the database or the log', async (t) => {
    const ground = Ground.of(t);
    const folder = await ground.folder();
    const settings = { CUBICLE_LOG: 'debug', CUBICLE_ENGINE: 'simulated' };
    const service = await ground.start(folder, settings);
    const as = service.as(service.firstKey().key);
    const made = (await as.post('/secrets', { name: 'name-to-be-found', value: values[0] })).body;
    const path = `/secrets/${made.id}`;
    const json = { cpu: 1, ram_mb: 512, secrets: [{ secret_id: made.id, env: 'TOKEN' }] };
    const headers = { 'idempotency-key': 'once' };
    const { id } = (await as.send('POST', '/computers', { json, headers })).body;
    const next = await as.put(path, { value: values[1], revision_id: made.revision_id });
    assert.equal(next.status, 200);
    await until('the computer has the new value', async () => {
      const { secrets_applied: applied } = (await as.get(`/computers/${id}`)).body;
      return applied.revisions[made.id] === next.body.revision_id;
    });
    assert.equal((await as.send('POST', `/computers/${id}/restart`)).status, 200);
    // Refusals of every kind carry a value too.
    const again = { name: 'name-to-be-found', value: values[2] };
    assertRefused(await as.post('/secrets', again), 409, 'name_taken');
    const stale = { value: values[3], revision_id: made.revision_id };
    assertRefused(await as.put(path, stale), 409, 'stale_revision');
    assertRefused(await as.post('/secrets', { name: '', value: values[4] }), 400);
    assertRefused(await as.send('POST', '/secrets', { raw: `{"value":"${values[5]}"` }), 400);
    const { code, stderr } = await ground.cubicle(['admin', 'keyring', 'rotate'], {
      CUBICLE_DATA: folder,
    });
    assert.equal(code, 0, stderr);
    assert.equal((await as.send('POST', `/computers/${id}/restart`)).status, 200);
    await service.stop();

    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => ({
        name: join(entry.parentPath, entry.name),
        bytes: readFileSync(join(entry.parentPath, entry.name)),
      }));
    assert.ok(files.some(({ bytes }) => bytes.includes('name-to-be-found')));
    for (const trace of traces) {
      const found = files.filter(({ bytes }) => bytes.includes(trace)).map(({ name }) => name);
      assert.deepEqual(found, []);
      assert.ok(!service.stderr.includes(trace) && !service.stdout.includes(trace));
    }
    assert.match(service.stderr, /replaceSecret/, 'requests are logged');
  });

  test('rotating the keyring seals everything anew under a running service, and drops old keys', async (t) => {
    const { ground, database, settings } = await prepared(t);
    const service = await ground.start(settings['CUBICLE_DATA'] as string, settings);
    const as = service.as(service.firstKey().key);
    const store = async (n: number) => {
      const answer = await as.post('/secrets', { name: `secret ${n}`, value: value(n) });
      assert.equal(answer.status, 201, answer.text);
    };
    const keyring = await Keyring.open(join(service.dataDir, 'keyring.json'));
    const opened = async () => {
      const rows = await database.run<Sealed>(sealedRows, []);
      return rows.map(({ id, revision_id, sealed }) => ({
        key: keyIdOf(sealed),
        value: keyring.open(sealed, aboutSecret(id, revision_id)).toString(),
      }));
    };
    await store(0);
    const [first] = await opened();
    assert.equal(first?.value, value(0));
    for (const [n, dropped] of [
      [1, 0],
      [2, 1],
      [3, 1],
    ] as const) {
      const told = await ground.cubicle(['admin', 'keyring', 'rotate', '--json'], settings);
      assert.equal(told.code, 0, told.stderr);
      const { key, ...rest } = JSON.parse(told.stdout);
      // Every secret so far, and the check.
      assert.deepEqual(rest, { sealed: n + 1, lost: 0, dropped });
      await store(n);
      const rows = await opened();
      assert.deepEqual(
        rows,
        Array.from({ length: n + 1 }, (_, i) => ({ key, value: value(i) })),
      );
    }
    assert.equal(keyring.ids.length, 2);
    assert.ok(!keyring.ids.includes(first?.key ?? ''));
    await service.stop();
    assert.equal((await ground.start(service.dataDir, settings)).stderr, '');
  });

  test('a server with another keyring stores nothing, says why in its log, and recovers', async (t) => {
    const { ground, database, settings } = await prepared(t);
    const first = await ground.start(settings['CUBICLE_DATA'] as string, settings);
    const { key } = first.firstKey();
    const { id, revision_id } = (
      await first.as(key).post('/secrets', { name: 'a', value: value(0) })
    ).body;
    const other = await ground.start(await ground.folder(), {
      DATABASE_URL: settings['DATABASE_URL'] as string,
      CUBICLE_LOG: 'error',
    });
    await until('it says why', () => /is not the keyring of this service/.test(other.stderr));
    const wrong = other.as(key);
    const refused = await wrong.post('/secrets', { name: 'b', value: value(1) });
    assertRefused(refused, 503);
    assertRefused(await wrong.put(`/secrets/${id}`, { value: value(1), revision_id }), 503);
    assert.equal((await wrong.get('/secrets')).body.secrets.length, 1);
    const told = await ground.cubicle(['admin', 'keyring', 'rotate', '--json'], {
      DATABASE_URL: settings['DATABASE_URL'] as string,
      CUBICLE_DATA: other.dataDir,
    });
    assert.equal(told.code, 1);
    assert.match(JSON.parse(told.stdout).error, /has no key/);
    const rows = await database.run<Sealed>(sealedRows, []);
    const keyring = await Keyring.open(join(first.dataDir, 'keyring.json'));
    assert.deepEqual(
      rows.map(({ sealed }) => keyIdOf(sealed)),
      keyring.ids,
    );
    const nowhere = await ground.cubicle(['admin', 'keyring', 'rotate', '--json'], {
      ...settings,
      CUBICLE_KEYRING: '/nowhere/keyring.json',
    });
    assert.equal(nowhere.code, 1);
    assert.match(JSON.parse(nowhere.stdout).error, /There is no keyring at \/nowhere/);
    // With the right file in its place it goes on, without a start.
    copyFileSync(join(first.dataDir, 'keyring.json'), join(other.dataDir, 'keyring.json'));
    assert.equal((await wrong.post('/secrets', { name: 'b', value: value(1) })).status, 201);
  });

  test('a lost keyring is replaced by another, and what it sealed stays shut until it is replaced', async (t) => {
    const { ground, database, settings } = await prepared(t);
    const service = await ground.start(settings['CUBICLE_DATA'] as string, settings);
    const as = service.as(service.firstKey().key);
    const { id, revision_id } = (await as.post('/secrets', { name: 'a', value: value(0) })).body;
    const path = join(service.dataDir, 'keyring.json');
    rmSync(path);
    assertRefused(await as.post('/secrets', { name: 'b', value: value(1) }), 503);
    const keyring = await Keyring.open(path);
    assertRefused(await as.post('/secrets', { name: 'b', value: value(1) }), 503);
    const adopt = (...more: string[]) =>
      ground.cubicle(['admin', 'keyring', 'adopt', '--json', ...more], settings);
    const asked = await adopt();
    assert.equal(asked.code, 1);
    assert.match(JSON.parse(asked.stdout).error, /Say --yes/);
    const { key, ...told } = JSON.parse((await adopt('--yes')).stdout);
    assert.deepEqual(told, { sealed: 1, lost: 1, dropped: 0 });
    assert.equal((await as.post('/secrets', { name: 'b', value: value(1) })).status, 201);
    const replaced = await as.put(`/secrets/${id}`, { value: value(2), revision_id });
    assert.equal(replaced.status, 200, replaced.text);
    const rows = await database.run<Sealed>(sealedRows, []);
    assert.deepEqual(
      rows.map((row) => keyring.open(row.sealed, aboutSecret(row.id, row.revision_id)).toString()),
      [value(2), value(1)],
    );
    assert.ok(rows.every(({ sealed }) => keyIdOf(sealed) === key));
  });
});

interface Sealed {
  id: string;
  revision_id: string;
  sealed: Buffer;
}
const sealedRows = sql('SELECT id, revision_id, sealed FROM secrets ORDER BY seq');

async function prepared(t: TestContext) {
  const kept = await makeDatabase();
  const database = new Database({ connectionString: kept.url }, 2);
  const ground = new Ground();
  t.after(async () => {
    await ground.clear();
    await database.close();
    await kept.drop();
  });
  const settings: Record<string, string> = {
    DATABASE_URL: kept.url,
    CUBICLE_DATA: await ground.folder(),
  };
  return { ground, database, settings };
}

function hex(text: string): string {
  return Buffer.from(text).toString('hex');
}
