import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../packages/server/postgres/embedded.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Answer } from '../support/client.ts';
import { makeDatabase } from '../support/database.ts';
import {
  databaseProcesses,
  Ground,
  postmaster,
  type ServiceProcess,
  signal,
} from '../support/process.ts';
import { unhung, until } from '../support/until.ts';

/** Every kind of call, all at once. */
async function callsWhileAway(service: ServiceProcess, key: string): Promise<void> {
  const [health, ...answers] = await unhung(
    'calls while the database is away',
    Promise.all([
      service.health(),
      service.as(key).get('/whoami'),
      service.as(key).get('/account'),
      service.as(key).get('/workspaces'),
      service.as(key).post('/workspaces', { name: 'away' }),
      service.as(key).delete('/workspaces/wsp-000000000000'),
      service.as(key).post('/api-keys', {}),
      service.as(`com_${'0'.repeat(48)}`).get('/whoami'),
    ]),
  );
  assertRefused(health, 503);
  for (const answer of answers) assertRefused(answer, 503);
  assertRefused(await service.as().get('/whoami'), 401, 'missing');
}

async function servesAgain(service: ServiceProcess, key: string): Promise<void> {
  await until('the service is healthy again', async () => (await service.health()).status === 200);
  await until('a write passes', async () => {
    const answer = await service.as(key).post('/workspaces', { name: `again ${Math.random()}` });
    if (answer.status !== 200) assertRefused(answer, 503);
    return answer.status === 200;
  });
  assert.equal((await service.as(key).get('/whoami')).status, 200);
}

test('Part 7: without its database every call is 503 in the error shape, and all is well afterwards', async (t) => {
  const ground = Ground.of(t);
  const folder = await ground.folder();
  const open = () => openEmbeddedPostgres({ dataDir: folder, role: 'service', say: () => {} });
  let database = await open();
  t.after(() => database.stop());
  const secret = 'hunter2-the-password';
  const service = await ground.start(await ground.folder(), {
    DATABASE_URL: database.url.replace('@', `:${secret}@`),
    CUBICLE_LOG: 'debug',
  });
  const { key } = service.firstKey();
  assert.equal((await service.as(key).get('/whoami')).status, 200);

  await database.stop();
  await callsWhileAway(service, key);
  database = await open();
  await servesAgain(service, key);
  await service.stop();
  await database.stop();
  assert.match(service.stderr, /"level":50/, 'the causes are in the log');
  assert.doesNotMatch(service.stdout + service.stderr, new RegExp(secret));
});

test('Part 7: a database that takes no connections is 503, not 500', async (t) => {
  const kept = await makeDatabase();
  const ground = Ground.of(t);
  t.after(() => kept.drop());
  const service = await ground.start(await ground.folder(), { DATABASE_URL: kept.url });
  const { key } = service.firstKey();
  const server = await superuser(t);
  const name = /test_\w+/.exec(kept.url)?.[0] ?? '';
  await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  await until('none is left that was let in just before', async () => {
    await endConnections(server, name);
    return (await service.health()).status === 503;
  });
  await callsWhileAway(service, key);
  await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  await servesAgain(service, key);
});

test('Part 7: a connection that breaks in the middle of a change is 503 and ends nothing else', async (t) => {
  const kept = await makeDatabase();
  const ground = Ground.of(t);
  t.after(() => kept.drop());
  const service = await ground.start(await ground.folder(), { DATABASE_URL: kept.url });
  const { key } = service.firstKey();
  const server = await superuser(t, kept.url);
  await server.query('BEGIN');
  await server.query('SELECT FROM accounts FOR UPDATE');
  const write = service.as(key).post('/workspaces', { name: 'broken off' });
  const name = /test_\w+/.exec(kept.url)?.[0] ?? '';
  await until('the change waits for the account', async () => {
    const waiting = await server.query(
      `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
      [name],
    );
    return waiting.rowCount === 1;
  });
  await endConnections(server, name);
  assertRefused(await unhung('the change', write), 503);
  await server.query('ROLLBACK');
  assert.ok(service.running);
  await servesAgain(service, key);
  const { body } = await service.as(key).get('/workspaces');
  assert.ok(!body.some((workspace: { name: string }) => workspace.name === 'broken off'));
});

test('Part 7: an embedded database that dies is started again; until then calls are 503', async (t) => {
  const ground = Ground.of(t);
  const service = await ground.start(await ground.folder());
  const { key } = service.firstKey();
  const before = postmaster(service.dataDir);
  let stop = false;
  const answers: Answer[] = [];
  const callers = Array.from({ length: 4 }, async (_, n) => {
    for (let i = 0; !stop; i += 1) {
      answers.push(await service.as(key).post('/workspaces', { name: `${n} ${i}` }));
      answers.push(await service.as(key).get('/whoami'));
    }
  });
  await until('calls are under way', () => answers.length > 20);
  process.kill(before, 'SIGKILL');
  await until('another server runs', () => postmaster(service.dataDir) !== before);
  await servesAgain(service, key);
  stop = true;
  await unhung('the callers', Promise.all(callers));
  for (const answer of answers.filter(({ status }) => status !== 200)) assertRefused(answer, 503);
  assert.ok(service.running);
});

test('Part 7: a database that stands still is 503 and no call hangs', async (t) => {
  const ground = Ground.of(t);
  const service = await ground.start(await ground.folder());
  const { key } = service.firstKey();
  assert.equal((await service.as(key).post('/workspaces', { name: 'moving' })).status, 200);
  const thaw = await freeze(t, service.dataDir);
  await callsWhileAway(service, key);
  thaw();
  await servesAgain(service, key);
});

test('SIGTERM ends the service also while its database stands still', async (t) => {
  const ground = Ground.of(t);
  const folder = await ground.folder();
  const database = await openEmbeddedPostgres({ dataDir: folder, role: 'service', say: () => {} });
  const service = await ground.start(await ground.folder(), { DATABASE_URL: database.url });
  const thaw = await freeze(t, folder);
  try {
    assert.equal((await unhung('the end', service.kill('SIGTERM'))).code, 0);
  } finally {
    thaw();
    await database.stop();
  }
});

/** Stops every process of the database in its tracks, those included that are just being started. */
async function freeze(t: TestContext, dataDir: string): Promise<() => void> {
  const pids: number[] = [];
  const thaw = () => {
    for (const pid of pids.splice(0)) signal(pid, 'SIGCONT');
  };
  t.after(thaw);
  await until('the database stands still', () => {
    // Looked at first: from then on none of them starts another.
    const still = pids.length > 0 && pids.every(standsStill);
    const more = databaseProcesses(dataDir).filter((pid) => !pids.includes(pid));
    for (const pid of more) signal(pid, 'SIGSTOP');
    pids.push(...more);
    return still && more.length === 0;
  });
  return thaw;
}

/** One that is gone stands still as well. */
function standsStill(pid: number): boolean {
  try {
    return /\) [TZ] [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
}

async function superuser(
  t: TestContext,
  url = process.env['CUBICLE_TEST_POSTGRES'],
): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'the test' });
  // Dropping the database at the end cuts this connection too.
  client.on('error', () => {});
  t.after(() => client.end());
  await client.connect();
  return client;
}

async function endConnections(server: pg.Client, database: string): Promise<void> {
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = $1 AND application_name <> 'the test'`,
    [database],
  );
}
