/** Proves who owns the server of a data folder, and that it comes back from every kind of end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Client } from 'pg';
import { DataFolder, query, until } from './data-folder.ts';

const refusal = (folder: DataFolder) => ({
  message: `Another Cubicle service is using the data folder ${folder.path}; give this one its own CUBICLE_DATA, or one DATABASE_URL for both.`,
});

/** The backend that holds the owner's lock; the lock is the only one of its kind. */
async function lockHolder(url: string): Promise<number | undefined> {
  const rows = await query(url, `select pid from pg_locks where locktype = 'advisory'`);
  return rows[0] === undefined ? undefined : Number(rows[0]['pid']);
}

test('a server killed with -9 is restarted with its committed rows', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const database = await folder.open();
  await query(database.url, 'create table kept as select 42 as answer');
  const pid = folder.postmaster();
  process.kill(pid, 'SIGKILL');
  await until(async () => {
    const [row] = await query(database.url, 'select answer from kept');
    return row?.['answer'] === 42 && folder.postmaster() !== pid;
  });
  // The lock is held again: the new server is as much ours as the old one.
  await until(() => lockHolder(database.url));
  await assert.rejects(folder.open({ waitMs: 0 }), refusal(folder));
});

test('a backend that outlives its killed server delays the restart, no more', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const database = await folder.open();
  const client = new Client(database.url);
  client.on('error', () => {});
  await client.connect();
  t.after(() => client.end());
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const backend = rows[0]?.pid ?? 0;
  process.kill(backend, 'SIGSTOP');
  process.kill(folder.postmaster(), 'SIGKILL');
  const log = join(folder.path, 'postgres.log');
  const refusals = () => readFileSync(log, 'utf8').split('shared memory block').length - 1;
  await until(() => refusals() > 3);
  process.kill(backend, 'SIGCONT');
  await until(() => query(database.url, 'select'));
});

test('a server that crashes again and again is given up', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const crashes: Error[] = [];
  const { url } = await folder.open({ onCrash: (error) => crashes.push(error) });
  // Four times, or more where a restart takes so long that they do not fall within a minute.
  while (crashes.length === 0) {
    const pid = folder.postmaster();
    process.kill(pid, 'SIGKILL');
    await until(() => crashes[0] ?? (folder.postmaster() !== pid && lockHolder(url)));
  }
  assert.match(crashes[0]?.message ?? '', /ended 4 times within a minute/);
});

test('a server told to end by SIGTERM comes back', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const database = await folder.open();
  const pid = folder.postmaster();
  process.kill(pid, 'SIGTERM');
  await until(() => folder.postmaster() !== pid && query(database.url, 'select'));
});

test('a crashed backend takes the lock away only until the server has recovered', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const database = await folder.open();
  const pid = folder.postmaster();
  const holder = await lockHolder(database.url);
  process.kill(holder ?? 0, 'SIGKILL');
  await until(async () => ![holder, undefined].includes(await lockHolder(database.url)));
  assert.equal(folder.postmaster(), pid);
});

test('the server of a service killed with -9 is adopted and ended by the next one', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const holder = folder.hold('service');
  assert.ok((await holder.reply).url);
  const pid = folder.postmaster();
  holder.process.kill('SIGKILL');
  await once(holder.process, 'exit');

  const database = await folder.open();
  assert.equal(folder.postmaster(), pid);
  await database.stop();
  assert.deepEqual(folder.servers(), []);
});

test('an adopted server that dies is restarted', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const holder = folder.hold('service');
  assert.ok((await holder.reply).url);
  holder.process.kill('SIGKILL');
  await once(holder.process, 'exit');
  const database = await folder.open();
  const pid = folder.postmaster();
  process.kill(pid, 'SIGKILL');
  await until(() => folder.postmaster() !== pid && query(database.url, 'select'));
});

test('a second service is refused, in this process and in another', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const database = await folder.open();
  await assert.rejects(folder.open({ waitMs: 0 }), refusal(folder));
  assert.equal((await folder.hold('service', { waitMs: 0 }).reply).error, refusal(folder).message);
  assert.deepEqual(await query(database.url, 'select 1 as one'), [{ one: 1 }]);
});

test('a command uses the server of a running service and leaves it running', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const service = await folder.open();
  const pid = folder.postmaster();
  const command = await folder.open({ role: 'command' });
  assert.deepEqual(command.connection, service.connection);
  assert.deepEqual(await query(command.url, 'select 1 as one'), [{ one: 1 }]);
  await command.stop();
  assert.equal(folder.postmaster(), pid);
  assert.deepEqual(await query(service.url, 'select 1 as one'), [{ one: 1 }]);
});

test('a service waits for a command that owns the server to end', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const command = await folder.open({ role: 'command' });
  const pid = folder.postmaster();
  const opening = folder.open({ waitMs: 60_000 });
  const attempts = `select from pg_stat_database where datname = 'postgres' and sessions > 3`;
  await until(async () => (await query(command.url, attempts)).length === 1);
  await command.stop();
  const service = await opening;
  assert.notEqual(folder.postmaster(), pid);
  assert.deepEqual(await query(service.url, 'select 1 as one'), [{ one: 1 }]);
});

test('processes that start at once share one server', async (t) => {
  const folder = await DataFolder.make(t);
  const roles = ['service', 'command', 'command', 'command'] as const;
  const holders = roles.map((role) => folder.hold(role, { waitMs: 0 }));
  const replies = await Promise.all(holders.map((holder) => holder.reply));
  const urls = new Set(replies.flatMap(({ url }) => url ?? []));
  assert.equal(urls.size, 1, JSON.stringify(replies));
  const told = /^Another (Cubicle service|command) is using the data folder /;
  for (const { error } of replies) if (error) assert.match(error, told);
});

test('a recycled pid in the lock files does not keep the server from starting', async (t) => {
  const folder = await DataFolder.makeReady(t);
  const first = await folder.open();
  const { uid, gid } = statSync(folder.cluster);
  const files = ['postgres/postmaster.pid', 'postgres-socket/.s.PGSQL.5432.lock'];
  const paths = files.map((file) => join(folder.path, file));
  const texts = paths.map((path) => readFileSync(path, 'utf8'));
  await first.stop();

  // PostgreSQL believes in any living process of its own user.
  const stranger = spawn('cat', { uid, gid, stdio: ['pipe', 'ignore', 'ignore'] });
  t.after(() => stranger.kill('SIGKILL'));
  await once(stranger, 'spawn');
  for (const [index, path] of paths.entries()) {
    writeFileSync(path, texts[index]!.replace(/^\d+/, `${stranger.pid}`));
  }
  const second = await folder.open();
  assert.deepEqual(await query(second.url, 'select 1 as one'), [{ one: 1 }]);
});
