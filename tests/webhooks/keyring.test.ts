import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { Keyring, openKeyring, UnknownSealingKey } from '../../packages/server/keyring.ts';

suite('keyring', () => {
  const secret = Buffer.from('a secret');

  test('what is sealed opens again for its purpose alone, and nothing of it shows', () => {
    const keyring = new Keyring([randomBytes(32)]);
    const sealed = keyring.seal('one', secret);
    assert.deepEqual(keyring.open('one', sealed), secret);
    assert.ok(!sealed.includes(secret));
    assert.notDeepEqual(keyring.seal('one', secret), sealed);
    assert.throws(() => keyring.open('two', sealed));
    for (let n = 4; n < sealed.length; n += 1) {
      const broken = Buffer.from(sealed);
      broken[n] = (broken[n] as number) ^ 1;
      assert.throws(() => keyring.open('one', broken), `byte ${n}`);
    }
  });

  test('after a rotation old secrets open, and another keyring opens none', () => {
    const [first, second] = [randomBytes(32), randomBytes(32)];
    const sealed = new Keyring([first]).seal('one', secret);
    const rotated = new Keyring([second, first]);
    assert.deepEqual(rotated.open('one', sealed), secret);
    assert.ok(rotated.has(new Keyring([first]).id));
    const renewed = rotated.seal('one', secret);
    assert.throws(() => new Keyring([first]).open('one', renewed), UnknownSealingKey);
  });

  test('the file is made once, for its owner alone, also by several that start at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-keyring-'));
    const file = join(folder, 'deep', 'keyring');
    const made = await Promise.all([openKeyring(file), openKeyring(file), openKeyring(file)]);
    for (const keyring of made) assert.deepEqual(keyring.id, made[0]?.id);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(join(folder, 'deep')), ['keyring']);
    const text = await readFile(file, 'utf8');
    await writeFile(file, `${randomBytes(32).toString('base64')}\n\n${text}`);
    const grown = await openKeyring(file);
    assert.ok(grown.has(made[0]?.id ?? Buffer.alloc(0)));
    for (const wrong of ['', 'short\n', `${text}x\n`]) {
      await writeFile(file, wrong);
      await assert.rejects(openKeyring(file), /32 bytes/);
    }
    await rm(folder, { recursive: true });
  });
});
