import assert from 'node:assert/strict';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { Keyring, KeyringError, keyIdOf } from '../../packages/server/keyring.ts';

suite('the keyring', () => {
  let folder = '';
  let count = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cubicle-keyring-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));
  const fresh = () => join(folder, `${(count += 1)}`, 'keyring.json');
  const secret = Buffer.from('the value of a secret');

  test('is made at first, for its owner alone, and found again', async () => {
    const path = fresh();
    const sealed = (await Keyring.open(path)).seal(secret, 'a');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.deepEqual((await Keyring.open(path)).open(sealed, 'a'), secret);
    assert.deepEqual(await readdir(join(path, '..')), ['keyring.json'], 'no draft is left');
  });

  test('several processes that start at once make one', async () => {
    const path = fresh();
    const rings = await Promise.all(Array.from({ length: 8 }, () => Keyring.open(path)));
    const sealed = rings.map((ring) => ring.seal(secret, 'a'));
    for (const ring of rings) {
      for (const value of sealed) assert.deepEqual(ring.open(value, 'a'), secret);
    }
  });

  test('seals anything, and never twice the same', async () => {
    const ring = await Keyring.open(fresh());
    for (const plain of [Buffer.alloc(0), Buffer.of(0), Buffer.alloc(70_000, 7), secret]) {
      const [one, two] = [ring.seal(plain, 'a'), ring.seal(plain, 'a')];
      assert.notDeepEqual(one, two);
      assert.deepEqual(ring.open(one, 'a'), plain);
    }
    assert.ok(!ring.seal(secret, 'a').includes(secret));
  });

  test('opens only what is whole and meant', async () => {
    const ring = await Keyring.open(fresh());
    const sealed = ring.seal(secret, 'secret:1');
    assert.throws(() => ring.open(sealed, 'secret:2'), KeyringError);
    for (let place = 0; place < sealed.length; place += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(place) ^ 1, place);
      assert.throws(() => ring.open(changed, 'secret:1'), KeyringError, `byte ${place}`);
      assert.throws(() => ring.open(sealed.subarray(0, place), 'secret:1'), KeyringError);
    }
    const other = await Keyring.open(fresh());
    assert.throws(() => other.open(sealed, 'secret:1'), /has no key/);
  });

  test('a key that was added seals at once in every process; a dropped one opens no more', async () => {
    const path = fresh();
    const [operator, running] = [await Keyring.open(path), await Keyring.open(path)];
    const old = running.seal(secret, 'a');
    const id = await operator.add();
    assert.equal(operator.ids.length, 2);
    assert.deepEqual(running.open(operator.seal(secret, 'a'), 'a'), secret);
    assert.equal(keyIdOf(running.seal(secret, 'a')), id);
    assert.deepEqual(running.open(old, 'a'), secret);
    await operator.drop(keyIdOf(old));
    assert.deepEqual(operator.ids, [id]);
    assert.throws(() => operator.open(old, 'a'), /has no key/);
    await operator.drop(id);
    assert.deepEqual(operator.ids, [id], 'the key that seals stays');
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  test('refuses a file that others can read, that is broken, or that is gone', async () => {
    const path = fresh();
    const ring = await Keyring.open(path);
    const kept = await readFile(path, 'utf8');
    await chmod(path, 0o640);
    await assert.rejects(Keyring.open(path), /can be read by others/);
    assert.throws(() => ring.seal(secret, 'a'), /can be read by others/);
    await chmod(path, 0o600);
    const shorter = kept.replace(/"key": "..../, '"key": "');
    for (const text of ['', '[]', 'null', '{"version":1,"keys":[]}', shorter, kept.slice(0, -9)]) {
      await writeFile(path, text);
      await assert.rejects(Keyring.open(path), (error: Error) => {
        assert.match(error.message, /is not one that can be read/);
        assert.equal(error.cause, undefined, 'what the parser says quotes the file');
        return true;
      });
    }
    await rm(path);
    assert.throws(() => ring.seal(secret, 'a'), /is gone/);
  });
});
