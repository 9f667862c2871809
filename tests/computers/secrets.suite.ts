// Secrets in a real computer: where they are, who has them, and that they are nowhere else.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { assertRefused } from '../support/assertions.ts';
import { act } from '../support/computers.ts';
import { bound, erased, replaced, secret, type TestSecret } from '../support/secrets.ts';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';
import { ClientSocket } from './socket.ts';

const run = promisify(execFile);
const file = '/run/cubicle-secrets/user/files/api-key';
/** Written nowhere else in one piece, so that finding it means something. */
const value = (n: number) => ['vrgk', 'secret', 'of', 'the', 'test', `${n}`].join('-').repeat(3);

export function secrets(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  let token: TestSecret;
  let key: TestSecret;
  const began = Math.floor(Date.now() / 1_000);
  before(async () => {
    ground = theGround();
    [token, key] = [await secret(ground.as, value(1)), await secret(ground.as, value(2))];
    const wish = [
      { secret_id: token.id, env: 'TOKEN' },
      { secret_id: key.id, file: 'api-key' },
    ];
    id = (await ground.create({ size: 'small', secrets: wish })).id;
  });

  const record = async () => (await ground.as.get(`/computers/${id}`)).body;
  const has = async (first: string, second: string) => {
    assert.equal(await ground.run(id, 'printf %s "$TOKEN"'), first);
    assert.equal(await ground.run(id, `cat ${file}`), second);
  };
  const follows = (one: TestSecret) =>
    until('the computer has the new value', async () => {
      const { secrets_applied: applied, secrets_delivering: busy } = await record();
      return applied?.revisions[one.id] === one.revision_id && !busy;
    });
  /** As a window of the desktop's terminal starts one. */
  const newShell = (print: string) =>
    ground.run(id, `env -i HOME=/home/user bash -ic '${print}' 2>/dev/null`, {
      session: 'desktop',
    });

  test('wire-account 3: with the answer to the create commands have the variable, and the file is the user’s alone, in memory', async () => {
    const { out } = await ground.exec(id, 'printf %s "$TOKEN"');
    assert.equal(out, value(1));
    await has(value(1), value(2));
    assert.equal(await ground.run(id, `stat -c '%a %U' ${file}`), '400 user');
    assert.equal(await ground.run(id, `stat -f -c %T ${file}`), 'tmpfs');
    await ground.desktopReady(id);
    const user = { session: 'desktop' } as const;
    assert.equal(
      await ground.run(id, `printf %s "$TOKEN"; cat ${file}`, user),
      value(1) + value(2),
    );
    const others = await ground.exec(
      id,
      `setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'ls /run/cubicle-secrets/user; cat ${file} /run/cubicle-secrets/held.json'`,
    );
    assert.deepEqual([others.out, others.code], ['', 1]);
    const { secrets_pending, secrets_generation, secrets_error } = await record();
    assert.deepEqual([secrets_pending, secrets_generation, secrets_error], [false, 1, undefined]);
  });

  test('wire-account 3: terminals and new shells have the variable, and a replaced value is in the next ones', async () => {
    const attach = async (session: string) => {
      const { terminal_url: url } = await record();
      return ClientSocket.open(`${url}&session=${session}`);
    };
    const socket = await attach('one');
    socket.socket.send(Buffer.from('echo "<$TOKEN>"\n'));
    await socket.shows(`<${value(1)}>`);
    assert.equal(await newShell('printf %s "$TOKEN"'), value(1));
    token = await replaced(ground.as, token, value(3));
    key = await replaced(ground.as, key, value(4));
    for (const one of [token, key]) await follows(one);
    await has(value(3), value(4));
    assert.equal(await newShell('printf %s "$TOKEN"'), value(3));
    socket.socket.send(Buffer.from('bash -i\n echo "[$TOKEN]"\n'));
    await socket.shows(`[${value(3)}]`);
    await socket.close();
    const other = await attach('two');
    other.socket.send(Buffer.from('echo "<$TOKEN>"\n'));
    await other.shows(`<${value(3)}>`);
    await other.close();
  });

  test('wire-account 3: they outlive the agent and the host daemon', async () => {
    const pid = () => ground.run(id, 'systemctl show --value -p MainPID cubicle-agent');
    const first = await pid();
    await ground.as.post(`/computers/${id}/exec`, { command: `kill -KILL ${first}` });
    await until('another agent is there', async () => (await pid()) !== first);
    await has(value(3), value(4));
    await ground.kill('host');
    await until('the host is back', async () => (await record()).secrets_pending === false);
    await has(value(3), value(4));
  });

  test('wire-account 3: a suspended computer keeps them, and gets what was replaced when it is resumed', async () => {
    await ground.post(`/computers/${id}/suspend`);
    token = await replaced(ground.as, token, value(5));
    assert.equal((await record()).secrets_pending, true);
    await ground.post(`/computers/${id}/start`);
    await follows(token);
    await has(value(5), value(4));
  });

  test('wire-account 3: a restart delivers them before its answer', async () => {
    await ground.post(`/computers/${id}/restart`);
    await has(value(5), value(4));
    assert.equal((await record()).secrets_generation, 2);
  });

  test('wire-account 3: no value is on the guest’s disk, in a file of the host or in a log', async () => {
    // What the search must find.
    await ground.run(id, `sh -c 'printf %s-%s vrgk written >/root/mark; sync'`);
    await ground.post(`/computers/${id}/stop?force=true`);
    const { alias, pool } = ground.place;
    const disk = join(alias, 'storage-pools', pool, 'containers', await ground.instanceOf(id));
    // Files come and go while they are looked at.
    const newer = ['-ignore_readdir_race', '-xdev', '-type', 'f', '-newerct', `@${began}`];
    // Finding nothing is no failure.
    const search = ['-exec', 'sh', '-c', 'grep -laF vrgk- "$@" || true', 'sh', '{}', '+'];
    const found = async (folder: string, ...more: string[]) => {
      const { stdout } = await run('find', [folder, ...newer, ...more, ...search]);
      return stdout.split('\n').filter(Boolean);
    };
    assert.deepEqual(await found(disk), [join(disk, 'rootfs/root/mark')]);
    assert.deepEqual(await found(ground.dataDir, '-not', '-name', '*.img'), []);
    const { stdout, stderr } = ground.service;
    assert.ok(!stdout.includes('vrgk-') && !stderr.includes('vrgk-'));
    const copy = await ground.as.post(`/computers/${id}/clone`, {});
    assert.equal((await ground.ended(copy.body.operation_id)).state, 'succeeded');
    await ground.post(`/computers/${copy.body.id}/start`);
    assert.equal(
      await ground.run(
        copy.body.id,
        `printf %s "\${TOKEN-none}"; ls -d /run/cubicle-secrets 2>/dev/null || true`,
      ),
      'none',
    );
    await ground.as.delete(`/computers/${copy.body.id}`);
  });

  test('wire-account 3: without a secret that was deleted it does not start, and without the binding it does', async () => {
    await erased(ground.as, key);
    assertRefused(await act(ground.as, id, 'start'), 409, 'unsupported');
    await bound(ground.as, id, [{ secret_id: token.id, env: 'TOKEN' }]);
    await ground.post(`/computers/${id}/start`);
    assert.equal(
      await ground.run(id, `printf %s "$TOKEN"; ls ${file} 2>/dev/null || true`),
      value(5),
    );
  });
}
