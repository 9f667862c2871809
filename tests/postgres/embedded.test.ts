/** Proves that the embedded PostgreSQL starts, stops and starts again wherever its folder lies. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { chown, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { DataFolder, isRoot, query, until } from './data-folder.ts';

const namespaceOf = (pid: number | 'self') => readlinkSync(`/proc/${pid}/ns/mnt`);

/** Fields of /proc/<pid>/stat after the name: state, parent, process group. */
const kinship = (pid: number) => {
  const [, parent, group] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return { parent: Number(parent), group: Number(group) };
};

for (const mode of [0o700, 0o755]) {
  test(`starts and stops in a folder of mode ${mode.toString(8)}`, async (t) => {
    const folder = await DataFolder.make(t, mode);
    const database = await folder.open();
    const pid = folder.postmaster();
    // Everything on the way execs: the process that we spawned is the server itself.
    assert.deepEqual(kinship(pid), { parent: process.pid, group: pid });
    if (isRoot) {
      assert.notEqual(statSync(folder.cluster).uid, 0);
      assert.equal(namespaceOf(pid) === namespaceOf('self'), mode === 0o755);
    }
    const socket = join(database.connection.host, '.s.PGSQL.5432');
    assert.equal(statSync(socket).mode & 0o777, 0o700);
    assert.equal(statSync(database.connection.host).mode & 0o777, 0o700);
    assert.ok(socket.startsWith(folder.path));

    await database.stop();
    await database.stop();
    assert.deepEqual(folder.servers(), []);
    assert.deepEqual(readdirSync(database.connection.host), []);
    assert.equal(existsSync(join(folder.cluster, 'postmaster.pid')), false);
  });
}

test('the server runs with our settings and the cluster keeps its data', async (t) => {
  const folder = await DataFolder.make(t);
  const first = await folder.open();
  const rows = await query(
    first.url,
    `select current_database() as database, current_user as "user",
            current_setting('server_encoding') as encoding, upper('ä') as upper,
            current_setting('data_checksums') as checksums, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit, current_setting('timezone') as zone,
            current_setting('listen_addresses') as addresses`,
  );
  assert.deepEqual(rows[0], {
    database: 'cubicle',
    user: 'cubicle',
    encoding: 'UTF8',
    upper: 'Ä',
    checksums: 'on',
    fsync: 'on',
    commit: 'on',
    zone: 'UTC',
    addresses: '',
  });
  await query(first.url, 'create table kept as select 42 as answer');
  await first.stop();

  const second = await folder.open();
  assert.deepEqual(await query(second.url, 'select answer from kept'), [{ answer: 42 }]);
  assert.equal(folder.said.filter((line) => line.startsWith('Preparing')).length, 1);
});

test('a data folder that is missing is made; one with a name full of traps works', async (t) => {
  const folder = await DataFolder.make(t);
  const dataDir = join(folder.path, `a b,'"$(id)%20+ü`, 'data');
  const database = await folder.open({ dataDir });
  assert.equal(statSync(dataDir).mode & 0o777, isRoot ? 0o711 : 0o700);
  assert.equal(statSync(join(dataDir, 'postgres')).mode & 0o777, 0o700);
  assert.deepEqual(await query(database.url, 'select 1 as one'), [{ one: 1 }]);
});

test('a path too long for a socket puts the socket in a private temporary folder', async (t) => {
  const folder = await DataFolder.make(t);
  const dataDir = join(folder.path, 'long'.repeat(40));
  const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const host = join(tmpdir(), `cubicle-${digest}`);
  t.after(() => rm(host, { recursive: true, force: true }));

  await symlink(folder.path, host);
  await assert.rejects(folder.open({ dataDir }), /is not a folder of the database server's user/);
  await rm(host);

  const database = await folder.open({ dataDir });
  assert.equal(database.connection.host, host);
  assert.equal(statSync(host).mode & 0o777, 0o700);
  assert.deepEqual(await query(database.url, 'select 1 as one'), [{ one: 1 }]);
  await database.stop();
  assert.equal(existsSync(host), false);
});

test('a process killed in the middle of initdb does not spoil the next start', async (t) => {
  const folder = await killedInInitdb(t);
  const database = await folder.open();
  assert.deepEqual(await query(database.url, 'select 1 as one'), [{ one: 1 }]);
});

/** Where we stood still and initdb did not, it came to its end: then another one is killed. */
async function killedInInitdb(t: TestContext, tries = 5): Promise<DataFolder> {
  const folder = await DataFolder.make(t);
  const halfMade = () => readdirSync(folder.path).filter((name) => name.includes('.new-'));
  const begun = () => halfMade().some((name) => existsSync(join(folder.path, name, 'PG_VERSION')));
  const holder = folder.hold('service');
  await until(() => begun() || existsSync(folder.cluster));
  holder.process.kill('SIGKILL');
  await once(holder.process, 'exit');
  if (!existsSync(folder.cluster)) return folder;
  assert.ok(tries > 1, 'it was never caught in the middle');
  await (await folder.open()).stop();
  return killedInInitdb(t, tries - 1);
}

test('half-made clusters go away, save those that a living process works on', async (t) => {
  const folder = await DataFolder.make(t);
  const { pid: deadPid } = spawnSync('true');
  const [dead, alive] = [`postgres.new-${deadPid}-abcdef`, `postgres.new-${process.ppid}-abcdef`];
  for (const name of [dead, alive]) {
    await mkdir(join(folder.path, name, 'base'), { recursive: true });
    await writeFile(join(folder.path, name, 'PG_VERSION'), '18');
  }
  await folder.open();
  assert.equal(existsSync(join(folder.path, dead)), false);
  assert.equal(existsSync(join(folder.path, alive)), true);
});

test('a service that is not root runs its server as itself', { skip: !isRoot }, async (t) => {
  const folder = await DataFolder.make(t);
  const uid = 65_534;
  await chown(folder.path, uid, uid);
  const { url } = await folder.hold('service', { uid }).reply;
  assert.ok(url);
  assert.equal(statSync(folder.cluster).uid, uid);
  // As root we use the cluster of that user under the user's own uid.
  assert.equal((await folder.open({ role: 'command' })).url, url);
});

test('a folder that cannot be reached is refused in one sentence', { skip: !isRoot }, async (t) => {
  const folder = await DataFolder.make(t);
  // Root without the right to make a mount namespace, as in most containers.
  const wrapper = ['setpriv', '--bounding-set=-sys_admin'];
  const { error } = await folder.hold('service', { wrapper }).reply;
  assert.ok(error?.includes(`cannot enter ${folder.path}; choose a CUBICLE_DATA `), error);
  assert.deepEqual(readdirSync(folder.path), []);
});

test('a full log is put aside at the start', async (t) => {
  const folder = await DataFolder.make(t);
  const log = join(folder.path, 'postgres.log');
  await writeFile(log, '');
  await truncate(log, 10 * 1024 * 1024 + 1);
  await folder.open();
  assert.equal(statSync(`${log}.1`).size, 10 * 1024 * 1024 + 1);
  assert.match(readFileSync(log, 'utf8'), /ready to accept connections/);
});
