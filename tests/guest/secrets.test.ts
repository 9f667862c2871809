// Secrets as the agent holds them: in a memory file system, for commands, shells and files.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { SecretsBody } from '../../packages/contract/guest/messages.ts';
import { computer, context, failure, good, Rig } from './rig.ts';

class SecretsRig {
  readonly rig: Rig;
  readonly folder: string;

  private constructor(rig: Rig, folder: string) {
    this.rig = rig;
    this.folder = folder;
  }

  static async of(t: TestContext): Promise<SecretsRig> {
    const rig = await Rig.of(t, { agent: false });
    const folder = await mkdtemp('/dev/shm/cubicle-secrets-');
    t.after(() => rm(folder, { recursive: true, force: true }));
    await mkdir(rig.at('etc/profile.d'), { recursive: true });
    await writeFile(rig.at('etc/bash.bashrc'), 'theirs=kept');
    const made = new SecretsRig(rig, join(folder, 'held'));
    await made.startAgent();
    return made;
  }

  startAgent(): Promise<void> {
    return this.rig.startAgent({ CUBICLE_SECRETS: this.folder });
  }

  deliver(body: Partial<SecretsBody>) {
    const whole = { serial: 1, replaces: true, env: {}, files: {}, ...body };
    return this.rig.links.deliver(context, computer, whole);
  }

  async out(command: string, more: object = {}): Promise<string> {
    return (await this.rig.exec(command, more)).stdout.toString();
  }
}

/** What shells make a mess of when they are not careful. */
const odd = `it's "so" $HOME \`id\` \\ \n\t🧊`;

test('variables are in every command, the caller’s own before them, and files are read by the user alone', async (t) => {
  const secrets = await withDelivery(t);
  const { rig, folder } = secrets;
  assert.equal(await secrets.out('printf %s "$TOKEN"'), odd);
  assert.equal(await secrets.out('printf %s "$TOKEN"', { env: { TOKEN: 'mine' } }), 'mine');
  // Though the profile sets it.
  assert.equal(await secrets.out('printf %s "$PATH"'), '/usr/bin:/bin:/of/theirs');
  const { pid } = await rig.start('printf %s "$TOKEN"');
  assert.equal((await rig.drain(pid)).stdout, odd);
  assert.equal(await readFile(join(folder, 'user/files/key'), 'utf8'), odd);
  const modes = async (...names: string[]) =>
    Promise.all(names.map(async (name) => (await stat(join(folder, name))).mode & 0o777));
  assert.deepEqual(
    await modes('user/files/key', 'user/environment', 'held.json'),
    [0o400, 0o400, 0o600],
  );
  assert.deepEqual(await modes('.', 'user', 'user/files'), [0o711, 0o750, 0o750]);
});

test('new shells read them, by a line that names none and is there once', async (t) => {
  const secrets = await withDelivery(t);
  const { rig } = secrets;
  good(await secrets.deliver({ serial: 2, env: { TOKEN: odd, UID: '7' } }));
  for (const file of ['etc/profile.d/cubicle-secrets.sh', 'etc/bash.bashrc']) {
    const text = await readFile(rig.at(file), 'utf8');
    assert.equal(text.split('user/environment ]').length, 2, text);
    assert.ok(!text.includes('TOKEN'));
    // As a shell does that was started before they were there. Some names are the shell's own.
    for (const shell of ['bash', 'sh']) {
      const read = `env -i ${shell} -c '. ${rig.at(file)}; printf %s "$TOKEN"'`;
      assert.equal(await secrets.out(read), odd);
    }
  }
  assert.match(await readFile(rig.at('etc/bash.bashrc'), 'utf8'), /^theirs=kept\n/);
});

test('a delivery replaces everything, or adds to what is there', async (t) => {
  const secrets = await withDelivery(t);
  const files = () => readdir(join(secrets.folder, 'user/files'));
  good(
    await secrets.deliver({ serial: 2, replaces: false, env: { B: 'b' }, files: { other: 'o' } }),
  );
  assert.equal(await secrets.out('printf %s "$TOKEN$B"'), `${odd}b`);
  assert.deepEqual((await files()).toSorted(), ['key', 'other']);
  const old = await open(join(secrets.folder, 'user/files/key'));
  t.after(() => old.close());
  good(await secrets.deliver({ serial: 3, files: { key: 'new' } }));
  assert.deepEqual(await files(), ['key']);
  assert.equal(await secrets.out('printf %s "${TOKEN-none}${B-none}"'), 'nonenone');
  assert.equal(await readFile(join(secrets.folder, 'user/files/key'), 'utf8'), 'new');
  assert.equal(await old.readFile('utf8'), odd, 'whoever had it open has the old one');
  good(await secrets.deliver({ serial: 4 }));
  assert.deepEqual(await files(), []);
  assert.deepEqual(
    (await readdir(secrets.folder)).toSorted(),
    ['held.json', 'user'],
    'nothing else is left',
  );
});

test('they outlive the agent, which tells its host which delivery it holds', async (t) => {
  const secrets = await withDelivery(t);
  assert.equal(secrets.rig.links.secrets(computer), 1);
  await secrets.rig.killAgent();
  await writeFile(join(secrets.folder, '.draft'), 'cut off');
  await secrets.startAgent();
  assert.equal(secrets.rig.links.secrets(computer), 1);
  assert.equal(await secrets.out('printf %s "$TOKEN"'), odd);
  await secrets.rig.restartHost();
  assert.equal(secrets.rig.links.secrets(computer), 1);
  good(await secrets.deliver({ serial: 2 }));
  assert.equal(secrets.rig.links.secrets(computer), 2);
  assert.ok(!existsSync(join(secrets.folder, '.draft')));
});

test('names that lead elsewhere, a NUL in a variable and a folder on a disk are refused, and nothing is changed', async (t) => {
  const secrets = await withDelivery(t);
  for (const body of [
    { files: { '../../x': 'x' } },
    { files: { '.draft': 'x' } },
    { env: { 'A B': 'x' } },
    { env: { A: 'a\0b' } },
  ]) {
    assert.equal(failure(await secrets.deliver({ serial: 2, ...body })), 'unsupported');
  }
  assert.equal(secrets.rig.links.secrets(computer), 1);
  assert.equal(await secrets.out('printf %s "$TOKEN"'), odd);

  const plain = await Rig.of(t);
  const delivery = { serial: 1, replaces: true, env: { A: 'on-the-disk' }, files: {} };
  assert.equal(failure(await plain.links.deliver(context, computer, delivery)), 'unsupported');
  assert.equal((await plain.exec('printf %s "${A-none}"')).stdout.toString(), 'none');
  assert.deepEqual(await readdir(plain.at('secrets')), []);
});

async function withDelivery(t: TestContext): Promise<SecretsRig> {
  const secrets = await SecretsRig.of(t);
  const env = { TOKEN: odd, PATH: '/usr/bin:/bin:/of/theirs' };
  good(await secrets.deliver({ env, files: { key: odd } }));
  return secrets;
}
