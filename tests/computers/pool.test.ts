// Computers that wait booted for a create: who takes them, what becomes of them, and that nobody sees them.

import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { execIn } from '../host/guest-shell.ts';
import { signal } from '../support/process.ts';
import { secret } from '../support/secrets.ts';
import { until } from '../support/until.ts';
import { ComputerGround, computerOf } from './ground.ts';
import { GuestGroup } from './guest-group.ts';

const ability = await canRunEngine();
if (!ability.can) test('the pool', { skip: ability.reason });
else describe('the pool', pool);

function pool(): void {
  let ground: ComputerGround;

  before(async () => {
    ground = await ComputerGround.open({ CUBICLE_POOL: '1' });
  });
  after(() => ground?.close());

  const waiting = async () => (await ground.instances()).filter((each) => computerOf(each) === '');
  const sessionOf = async (instance: string) =>
    (await execIn(ground.place, instance, `cut -d ' ' -f 22 /proc/1/stat`)).output.trim();
  /** The one that waits, once a create would take it. */
  const next = () =>
    until('one waits with its desktop up', async () => {
      const [instance] = await waiting();
      const { waiting: ready } = (await ground.report()).host;
      if (instance === undefined || ready !== 1) return undefined;
      return { name: instance.name, session: await sessionOf(instance.name) };
    });

  test('nothing of the pool is in listings or quota', async () => {
    await next();
    assert.deepEqual((await ground.as.get('/computers')).body, []);
    assert.deepEqual((await ground.report()).computers, []);
    const { usage } = (await ground.as.get('/account')).body;
    assert.deepEqual(
      Object.values(usage).filter((used) => used !== 0),
      [],
    );
  });

  test('wire-computers 4: a create of a named size is one that was booted before, with its own name and size', async () => {
    const { name, session } = await next();
    const secrets = [{ secret_id: (await secret(ground.as, 'in the pool')).id, env: 'TOKEN' }];
    const { id } = await ground.create({ size: 'medium', secrets });
    assert.equal((await ground.told(id))?.ready, true, 'the desktop is up at once');
    assert.equal(await ground.run(id, 'printf %s "$TOKEN"'), 'in the pool');
    assert.equal(await ground.instanceOf(id), name);
    assert.equal(await ground.session(id), session);
    assert.equal(await ground.run(id, 'hostname; cat /etc/hostname'), `${id}\n${id}`);
    const guest = new GuestGroup(ground.place, name);
    assert.equal(guest.memoryLimitBytes, 4096 * 2 ** 20);
    // Incus shares the processors out a moment later.
    await until('it has its processors', () => guest.cpus === Math.min(2, cpus().length));
    assert.equal(await guest.diskLimitBytes(), 20 * 2 ** 30);
    await ground.post(`/computers/${id}/restart`);
    assert.equal(await ground.run(id, 'hostname'), id, 'it keeps its name');
    assert.equal((await ground.as.delete(`/computers/${id}`)).status, 200);
  });

  test('the pool is filled again, and a daemon that was killed keeps what waits', async () => {
    const { name, session } = await next();
    await ground.kill('host');
    const kept = await next();
    assert.deepEqual(kept, { name, session });
    const { id } = await ground.create({ size: 'small' });
    assert.equal(await ground.instanceOf(id), name);
    assert.equal(await ground.session(id), session);
    const filled = await next();
    assert.notEqual(filled.name, name);
    assert.equal((await waiting()).length, 1, 'as many as were asked for');
    assert.equal((await ground.as.delete(`/computers/${id}`)).status, 200);
  });

  test('wire-computers 9: a daemon killed while a create moves in leaves one computer, by its name and with its secrets', async () => {
    const { name } = await next();
    const pid = await ground.pid('host');
    const secrets = [{ secret_id: (await secret(ground.as, 'kept')).id, env: 'TOKEN' }];
    const json = { size: 'medium', secrets };
    const headers = { 'idempotency-key': 'moves-in' };
    const call = ground.as.send('POST', '/computers', { json, headers });
    // As soon as it is labelled, and not yet named.
    await until('it is taken', async () => !(await waiting()).some((each) => each.name === name));
    signal(pid, 'SIGKILL');
    await call;
    const found = await ground.as.get('/operations?idempotency_key=moves-in');
    const operation = await ground.ended(found.body.operations[0].id);
    assert.equal(operation.state, 'succeeded');
    const id = operation.computer_id;
    // It may have been answered before the daemon died.
    await until('another daemon answers', async () => {
      return (await ground.pid('host')) !== pid && (await ground.told(id)) !== undefined;
    });
    assert.equal(await ground.instanceOf(id), name);
    assert.equal(await ground.run(id, 'hostname; cat /etc/hostname'), `${id}\n${id}`);
    assert.equal(await ground.run(id, 'printf %s "$TOKEN"'), 'kept');
    assert.equal(new GuestGroup(ground.place, name).memoryLimitBytes, 4096 * 2 ** 20);
    assert.equal((await ground.as.delete(`/computers/${id}`)).status, 200);
  });

  test('another resolution, or a computer that is not started, is made for itself', async () => {
    const { name } = await next();
    const { id } = await ground.create({ resolution: '1024x768' });
    const { id: still } = await ground.create({ size: 'small', start: false });
    assert.deepEqual(
      (await waiting()).map((each) => each.name),
      [name],
    );
    await ground.desktopReady(id);
    const desktop = { session: 'desktop' } as const;
    assert.equal(await ground.run(id, 'xdotool getdisplaygeometry', desktop), '1024 768');
    assert.equal(await ground.status(still), 'stopped');
  });

  test('what waits and has died is of no use to anybody', async () => {
    const { name } = await next();
    await execIn(ground.place, name, 'poweroff --force --force');
    await until('it has ended', async () => {
      const found = (await ground.instances()).find((each) => each.name === name);
      return found === undefined || found.status_code !== 103;
    });
    const { id } = await ground.create({ size: 'small' });
    assert.equal(await ground.run(id, 'hostname'), id);
    assert.notEqual(await ground.instanceOf(id), name);
    await until(
      'it is gone',
      async () => !(await ground.instances()).some((each) => each.name === name),
    );
  });
}
