// Kills the processes of a service with real computers while creates, clones and deletes are under way at
// many points at once, and compares everything with everything when they have settled.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { signal } from '../support/process.ts';
import { secret } from '../support/secrets.ts';
import { unhung, until } from '../support/until.ts';
import { Attempt, boundValue, type Listed, mark } from './attempt.ts';
import { ComputerGround, computerOf } from './ground.ts';

const ability = await canRunEngine();
if (!ability.can) test('crashes', { skip: ability.reason });
else describe('crashes', crashes);

/**
 * How long before the kill a call of each kind is made, in milliseconds. Recorded after some 20, told to
 * the host after 30; a clone has its first answer after 100, a create that boots is done after 500.
 */
const moments = [20, 60, 110, 180, 320, 600] as const;

function crashes(): void {
  let ground: ComputerGround;
  let source: string;
  let bound: string;
  /** Computers that nothing is done to: by id, with the session that must go on. */
  const bystanders = new Map<string, string>();

  before(async () => {
    ground = await ComputerGround.open();
    bound = (await secret(ground.as, boundValue)).id;
    source = (await ground.create()).id;
    await ground.run(source, `echo mark > ${mark}; sync`);
    await ground.post(`/computers/${source}/stop`);
    for (let n = 0; n < 2; n += 1) {
      const { id } = await ground.create();
      bystanders.set(id, await ground.session(id));
    }
  });
  after(() => ground?.close());

  for (const victim of ['incus', 'host', 'server'] as const) {
    test(`wire-computers 9, wire-computers 10: killed at many points of create, clone and delete: ${victim}`, async (t) => {
      const doomed = await spare(moments.length);
      const attempts = moments.flatMap((ms, n) => [
        { ms, attempt: new Attempt({ kind: 'create', start: n % 2 === 0, secret: bound }) },
        { ms, attempt: new Attempt({ kind: 'clone', source }) },
        { ms, attempt: new Attempt({ kind: 'delete', id: doomed[n] ?? '' }) },
      ]);
      await crash(victim, attempts);
      const listing = await settled();
      const problems: unknown[] = [];
      for (const { ms, attempt } of attempts) {
        const how = await attempt.check(ground, listing).catch((error: unknown) => {
          problems.push(error);
          return String(error);
        });
        t.diagnostic(`${ms} ms: ${how}`);
      }
      if (problems.length > 0) throw problems[0];
      await compare();
    });
  }

  test('wire-computers 5, wire-computers 9: a copy cut off, whose source runs again before it is repeated, fails by name or is whole', async (t) => {
    const attempts = [0, 1, 2].map(() => ({
      ms: 0,
      attempt: new Attempt({ kind: 'clone', source }),
    }));
    const pid = await ground.pid('host');
    await Promise.all(attempts.map(({ attempt }) => attempt.send(ground)));
    signal(pid, 'SIGKILL');
    // The host is away at first.
    await until('the source runs', async () => {
      await pause(50);
      return (await ground.as.send('POST', `/computers/${source}/start`)).status === 200;
    });
    const listing = await settled();
    for (const { attempt } of attempts) t.diagnostic(await attempt.check(ground, listing));
    await compare();
    await ground.post(`/computers/${source}/stop`);
  });

  async function crash(
    victim: 'server' | 'host' | 'incus',
    attempts: readonly { ms: number; attempt: Attempt }[],
  ): Promise<void> {
    const pid = await ground.pid(victim);
    const longest = Math.max(...attempts.map(({ ms }) => ms));
    const calls = attempts.map(async ({ ms, attempt }) => {
      await pause(longest - ms);
      await attempt.send(ground);
    });
    await pause(longest);
    signal(pid, 'SIGKILL');
    await unhung('the calls', Promise.all(calls));
    if (victim === 'server') {
      await ground.service.ended;
      await ground.start();
    }
  }

  /** The listing once nothing is under way any more. */
  async function settled(): Promise<Listed[]> {
    await until('every operation is final', async () => {
      const { body } = await ground.as.get('/operations?limit=100');
      const open = body.operations.filter(
        ({ finished_at }: { finished_at: unknown }) => finished_at === null,
      );
      return open.length === 0;
    });
    return until('the host answers', listed);
  }

  async function listed(): Promise<Listed[]> {
    const { status, body, text } = await ground.as.get('/computers');
    assert.equal(status, 200, text);
    return body;
  }

  /** The records, the host, Incus itself and the account's quota say the same. */
  async function compare(): Promise<void> {
    let told: unknown;
    await until('nothing is anywhere that is not recorded', async () => {
      told = await differences();
      assert.deepEqual(told, { unrecorded: [], absent: [], twice: [], folders: [] });
      return true;
    }).catch(() => assert.deepEqual(told, { unrecorded: [], absent: [], twice: [], folders: [] }));
    const rows = await listed();
    const sum = (of: (row: Listed) => number) => rows.reduce((all, row) => all + of(row), 0);
    const running = rows.filter(({ running_ram_mb }) => running_ram_mb > 0);
    const { usage } = (await ground.as.get('/account')).body;
    assert.deepEqual(usage, {
      kept_computers: rows.length,
      configured_vcpu: sum(({ cpu }) => cpu),
      configured_disk_gb: sum(({ disk_gb }) => disk_gb),
      running_or_reserved_computers: running.length,
      running_or_reserved_vcpu: running.reduce((all, { cpu }) => all + cpu, 0),
      running_or_reserved_ram_mb: sum(({ running_ram_mb }) => running_ram_mb),
      snapshot_storage_bytes: 0,
    });
    for (const { id, status, running_ram_mb } of rows) {
      assert.equal(running_ram_mb > 0, status === 'running', `${id} is ${status}`);
    }
    for (const [id, session] of bystanders) assert.equal(await ground.session(id), session);
    for (const { id } of running) assert.equal(await ground.run(id, 'hostname'), id);
  }

  async function differences(): Promise<Record<string, string[]>> {
    const [rows, report, instances] = await Promise.all([
      listed(),
      ground.report(),
      ground.instances(),
    ]);
    const recorded = new Set(rows.map(({ id }) => id));
    const there = instances.map(computerOf);
    const seen = new Set(report.computers.map(({ id }) => id));
    const names = new Set(instances.map(({ name }) => name));
    return {
      unrecorded: [...there, ...seen].filter((id) => !recorded.has(id)),
      absent: rows
        .filter(
          ({ id, status }) => status !== 'build-failed' && !(seen.has(id) && there.includes(id)),
        )
        .map(({ id }) => id),
      twice: there.filter((id, n) => there.indexOf(id) !== n),
      folders: ground.linkFolders().filter((name) => !names.has(name)),
    };
  }

  /** As many as a round deletes, running ones among them; those of the round before that are too many go. */
  async function spare(many: number): Promise<string[]> {
    const all = (await listed())
      .map(({ id }) => id)
      .filter((id) => id !== source && !bystanders.has(id));
    await Promise.all(
      all.slice(many).map(async (id) => {
        const answer = await ground.as.delete(`/computers/${id}`);
        assert.equal(answer.status, 200, answer.text);
      }),
    );
    const lacking = Array.from({ length: Math.max(0, many - all.length) }, async (_, n) => {
      return (await ground.create({ size: 'small', start: n === 0 })).id;
    });
    return [...all.slice(0, many), ...(await Promise.all(lacking))];
  }
}
