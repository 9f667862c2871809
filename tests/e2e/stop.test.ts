import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { databaseProcesses, Ground, type ServiceProcess } from '../support/process.ts';
import { beginSlowly } from '../support/slow-request.ts';
import { unhung, until } from '../support/until.ts';

const refused = (service: ServiceProcess) =>
  until('new connections are refused', async () => {
    const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
    try {
      await once(socket, 'connect');
      return undefined;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
    } finally {
      socket.destroy();
    }
  });

test('SIGTERM lets what is under way finish, refuses the new, and leaves no process', async (t) => {
  const ground = Ground.of(t);
  const service = await ground.start(await ground.folder());
  const { key } = service.firstKey();
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const idle = await idleConnection(t, service);
  const unused = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
  t.after(() => unused.destroy());
  await once(unused, 'connect');
  const unusedClosed = once(unused.resume(), 'close');
  const underWay = await Promise.all(
    Array.from({ length: 5 }, (_, n) =>
      beginSlowly(`${service.baseUrl}/workspaces`, key, {
        method: 'POST',
        json: { name: `under way ${n}` },
        agent,
      }),
    ),
  );

  service.child.kill('SIGTERM');
  await until('the service says so', () => service.stdout.includes('Stopping'));
  await refused(service);
  await unhung('an idle connection is closed', idle.closed);
  await unhung('one that was never used is closed', unusedClosed);
  assert.ok(service.running, 'it waits for what is under way');
  for (const request of underWay) {
    const answer = await request.finish();
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['connection'], 'close', 'so that nobody holds up the end');
  }
  const { code, stderr } = await unhung('the end', service.ended);
  assert.equal(code, 0, stderr);
  assert.deepEqual(databaseProcesses(service.dataDir), []);

  const next = await ground.start(service.dataDir);
  const { body } = await next.as(key).get('/workspaces');
  assert.equal(body.length, underWay.length);
});

test('a second SIGTERM changes nothing, and Ctrl-C stops as well', async (t) => {
  const ground = Ground.of(t);
  const service = await ground.start(await ground.folder());
  const slow = await beginSlowly(`${service.baseUrl}/workspaces`, service.firstKey().key, {
    method: 'POST',
    json: { name: 'slow' },
  });
  service.child.kill('SIGINT');
  await until('the service says so', () => service.stdout.includes('Stopping'));
  service.child.kill('SIGTERM');
  service.child.kill('SIGINT');
  assert.equal((await slow.finish()).status, 200);
  assert.equal((await unhung('the end', service.ended)).code, 0);
  assert.deepEqual(databaseProcesses(service.dataDir), []);
});

test('SIGTERM while the service starts leaves no process and no half-made data', async (t) => {
  const ground = Ground.of(t);
  const folder = await ground.folder();
  for (const sign of [/Preparing the database/, /Migrating the database/, /ready at/]) {
    const service = ground.launch(folder);
    // Later starts have nothing to prepare or migrate.
    await until(
      'it is that far',
      () => sign.test(service.stdout) || service.stdout.includes('ready'),
    );
    service.child.kill('SIGTERM');
    await unhung('the end', service.ended);
    await until('no process is left', () => databaseProcesses(folder).length === 0);
  }
  const service = await ground.start(folder);
  assert.equal((await service.as(service.firstKey().key).get('/whoami')).status, 200);
});

/** A connection that has had its answer and waits for the next request. */
async function idleConnection(
  t: TestContext,
  service: ServiceProcess,
): Promise<{ closed: Promise<unknown> }> {
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const request = get(`${service.origin}/healthz`, { agent });
  const [socket] = await once(request, 'socket');
  const closed = once(socket, 'close');
  const [response] = await once(request, 'response');
  await response.resume().toArray();
  return { closed };
}
