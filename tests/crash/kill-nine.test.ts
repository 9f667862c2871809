import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import pg from 'pg';
import { assertRefused } from '../support/assertions.ts';
import {
  databaseProcesses,
  Ground,
  postmaster,
  type ServiceProcess,
  signal,
} from '../support/process.ts';
import { newEmail } from '../support/service.ts';
import { unhung, until } from '../support/until.ts';
import { type Shown, Writer } from './writer.ts';

const rounds = 6;
const accounts = 3;
const writersEach = 2;

test('Part 4 Workspaces 5, Part 5 6, Part 7: after SIGKILL all that was answered is there, the rest wholly or not at all', async (t) => {
  const random = seeded(t);
  const ground = Ground.of(t);
  const folder = await ground.folder();
  let service = await ground.start(folder);
  const groups: { key: string; writers: Writer[] }[] = [];
  for (let n = 0; n < accounts; n += 1) {
    const writers = Array.from({ length: writersEach }, (_, i) => new Writer(`${n} ${i}`, random));
    groups.push({ key: await newAccount(ground, folder), writers });
  }
  const everyWriter = groups.flatMap(({ key, writers }) =>
    writers.map((writer) => ({ key, writer })),
  );

  for (let round = 0; round < rounds; round += 1) {
    const together = round % 2 === 1;
    const server = postmaster(folder);
    const killAt = 20 + Math.floor(random() * 200);
    let answered = 0;
    const count = () => {
      answered += 1;
      if (answered === killAt) setTimeout(kill, random() * 8);
    };
    const kill = () => {
      const pids = together ? [service.child.pid as number, server] : [service.child.pid as number];
      for (const pid of random() < 0.5 ? pids : pids.toReversed()) signal(pid, 'SIGKILL');
    };
    await unhung(
      'the writers',
      Promise.all(everyWriter.map(({ key, writer }) => writer.write(service.as(key), count))),
    );
    // Whoever is told 503 stops too; where all were, nobody is left to count.
    if (answered < killAt) kill();
    await service.ended;
    if (!together) assert.ok(databaseProcesses(folder).includes(server), 'an orphan');
    const old = sessions(folder);

    service = await ground.start(folder);
    assert.equal(postmaster(folder) === server, !together, 'the orphan is adopted');
    // A commit that had reached the database before the kill may end after it.
    await until('old sessions are over', () => !sessions(folder).some((pid) => old.includes(pid)));
    const learnt: string[] = [];
    for (const { key, writers } of groups) {
      const shown = await look(service, key);
      learnt.push(...writers.map((writer) => writer.learn(shown)));
      assertAllThere(shown, writers);
    }
    t.diagnostic(`round ${round}, ${together ? 'both' : 'service'} killed: ${learnt.join(', ')}`);
    await Promise.all(everyWriter.map(({ writer }) => writer.checkKeys(service, 5)));
  }

  await Promise.all(everyWriter.map(({ writer }) => writer.checkKeys(service, Infinity)));
  await service.stop();
  assert.deepEqual(databaseProcesses(folder), []);
});

test('Part 4 Workspaces 5: a delete killed between its steps has taken neither workspace nor keys', async (t) => {
  const ground = Ground.of(t);
  const folder = await ground.folder();
  for (const together of [false, true]) {
    const service = await ground.start(folder);
    const as = service.as(service.firstKey().key);
    const name = `both killed: ${together}`;
    const workspace = (await as.post('/workspaces', { name })).body.id;
    const keys: string[] = [];
    for (let n = 0; n < 2; n += 1) {
      keys.push((await as.post('/api-keys', { workspace_id: workspace })).body.raw);
    }
    // The keys go first; with the workspace's row held the delete stops there.
    const holder = await session(t, folder);
    await holder.query('BEGIN');
    await holder.query('SELECT FROM workspaces WHERE id = $1 FOR UPDATE', [workspace]);
    const deleting = assert.rejects(as.delete(`/workspaces/${workspace}`));
    await until('the delete stands still', async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
      return (await holder.query(waiting)).rowCount === 1;
    });
    const server = postmaster(folder);
    process.kill(service.child.pid as number, 'SIGKILL');
    if (together) process.kill(server, 'SIGKILL');
    await Promise.all([deleting, service.ended]);
    await holder.query('ROLLBACK').catch(() => {});

    const next = await ground.start(folder);
    const again = next.as(next.firstKey().key);
    assert.equal((await again.get(`/workspaces/${workspace}`)).body.name, name);
    for (const key of keys) assert.equal((await next.as(key).get('/whoami')).status, 200);
    const { body } = await again.delete(`/workspaces/${workspace}`);
    assert.deepEqual(body, { ok: true, revoked_keys: keys.length });
    for (const key of keys) assertRefused(await next.as(key).get('/whoami'), 401, 'revoked');
    await next.stop();
  }
});

test('a service killed during its first start begins anew, and the key it kept is the one that works', async (t) => {
  const random = seeded(t);
  const ground = Ground.of(t);
  const folder = await ground.folder();
  const moments: ((service: ServiceProcess) => boolean)[] = [
    () => databaseProcesses(folder).length > 0,
    ({ stdout }) => stdout.includes('Preparing'),
    () => existsSync(join(folder, 'postgres/postmaster.pid')),
    ({ stdout }) => stdout.includes('Migrating'),
    () => existsSync(join(folder, 'first-key.json')),
    ({ stdout }) => stdout.includes('ready'),
  ];
  for (const moment of moments) {
    const service = ground.launch(folder);
    await until('that moment', () => moment(service) || service.stdout.includes('ready'));
    await service.kill('SIGKILL');
    if (random() < 0.5) for (const pid of databaseProcesses(folder)) signal(pid, 'SIGKILL');
  }
  let service = await ground.start(folder);
  const kept = service.firstKey();
  const me = (await service.as(kept.key).get('/whoami')).body;
  assert.equal(me.account.id, kept.account_id);
  await service.stop();
  // A first step of the database that outlived its service may still have written until now.
  service = await ground.start(folder);
  assert.deepEqual({ ...service.firstKey(), base_url: '' }, { ...kept, base_url: '' });
  const left = (await readdir(folder)).filter((name) => /postgres\.new|draft/.test(name));
  assert.deepEqual(left, []);
  const listed = await ground.cubicle(['admin', 'account', 'list', '--json'], {
    CUBICLE_DATA: folder,
  });
  assert.equal(JSON.parse(listed.stdout).accounts.length, 1);
});

/** Answers the owner's key. */
async function newAccount(ground: Ground, folder: string): Promise<string> {
  const { stdout } = await ground.cubicle(
    `admin account create --name Crash --plan swarm --owner ${newEmail()} --json`.split(' '),
    { CUBICLE_DATA: folder },
  );
  return JSON.parse(stdout).key.raw;
}

/** A session of our own in the embedded database. */
async function session(t: TestContext, folder: string): Promise<pg.Client> {
  const host = join(folder, 'postgres-socket');
  const client = new pg.Client({ host, port: 5432, user: 'cubicle', database: 'cubicle' });
  // It ends with the server at the latest.
  client.on('error', () => {});
  t.after(() => client.end());
  await client.connect();
  return client;
}

/** The database's sessions that serve somebody. */
function sessions(folder: string): number[] {
  return databaseProcesses(folder).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: cubicle ');
    } catch {
      return false;
    }
  });
}

async function look(service: ServiceProcess, key: string): Promise<Shown> {
  const [workspaces, keys, me] = await Promise.all(
    ['/workspaces', '/api-keys', '/whoami'].map(async (path) => {
      const answer = await service.as(key).get(path);
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    }),
  );
  return {
    workspaces: new Map(workspaces.map(({ id, name }: Record<string, string>) => [id, name])),
    keys: keys.filter(({ id }: { id: string }) => id !== me.key.id),
  };
}

function assertAllThere(shown: Shown, writers: readonly Writer[]): void {
  const expected = writers.map((writer) => writer.expected);
  const workspaces = expected.flatMap((one) => [...one.workspaces]);
  assert.deepEqual(Object.fromEntries(shown.workspaces), Object.fromEntries(workspaces));
  const scopes = (keys: Shown['keys']) =>
    Object.fromEntries(keys.map(({ id, workspace_id }) => [id, workspace_id]));
  assert.deepEqual(scopes(shown.keys), scopes(expected.flatMap((one) => one.keys)));
}

/** The same moments again with CUBICLE_TEST_SEED; what happens in them is the machine's. */
function seeded(t: TestContext): () => number {
  const seed = Number(process.env['CUBICLE_TEST_SEED'] ?? randomInt(2 ** 31));
  t.diagnostic(`seed ${seed}`);
  let state = seed;
  // mulberry32
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
