// How long commands are remembered, on either side, with the clock in hand.

import assert from 'node:assert/strict';
import test from 'node:test';
import { counts, keepExitedMs } from '../../packages/contract/guest/sizes.ts';
import { limits } from '../../packages/contract/limits.ts';
import type { Command } from '../../packages/guest/command.ts';
import { Executions as GuestExecutions } from '../../packages/guest/executions.ts';
import { OutputRoom } from '../../packages/guest/output-room.ts';
import { type Execution, Executions } from '../../packages/host/guest/executions.ts';

const id = (i: number) => `exec_${i.toString(16).padStart(32, '0')}`;

function atHost() {
  const time = { now: 0 };
  const told: Execution[] = [];
  const clock = { now: () => time.now, date: () => new Date(time.now) };
  const executions = new Executions(clock, (execution) => told.push(execution));
  return { executions, time, told };
}

function run(executions: Executions, i: number): void {
  assert.ok(executions.expect(id(i)));
  executions.started(id(i), i);
}

test('host: what exited is kept ten minutes, what runs for as long as it runs', () => {
  const { executions, time } = atHost();
  run(executions, 1);
  run(executions, 2);
  time.now = 5_000;
  executions.exited(id(1), 0);
  time.now = 5_000 + keepExitedMs - 1;
  assert.deepEqual(executions.byId(id(1))?.endedAt, new Date(5_000));
  assert.equal(executions.byPid(1)?.exitCode, 0);
  time.now += 1;
  assert.equal(executions.byId(id(1)), undefined);
  assert.equal(executions.byPid(1), undefined);
  time.now += 100 * keepExitedMs;
  assert.equal(executions.byId(id(2))?.status, 'running');
});

test('host: what was lost is kept ten minutes, without an end', () => {
  const { executions, time, told } = atHost();
  run(executions, 1);
  run(executions, 2);
  assert.deepEqual(executions.reconcile([id(2), id(9)], []), [id(2)]);
  assert.deepEqual(told, [{ executionId: id(1), pid: 1, status: 'lost', startedAt: new Date(0) }]);
  time.now = keepExitedMs;
  assert.equal(executions.byId(id(1)), undefined);
  assert.equal(executions.byId(id(2))?.status, 'running');
});

test('host: an end is told once, also when it comes before the answer to the start', () => {
  const { executions, told } = atHost();
  assert.ok(executions.expect(id(1)));
  executions.exited(id(1), 3);
  assert.equal(executions.byId(id(1)), undefined, 'nobody has its id yet');
  assert.deepEqual(told, []);
  executions.started(id(1), 77);
  executions.exited(id(1), 4);
  executions.reconcile([], [{ id: id(1), exit_code: 5 }]);
  assert.deepEqual(
    told.map(({ pid, exitCode }) => [pid, exitCode]),
    [[77, 3]],
  );
});

test('host: a number used again is the newest command’s', () => {
  const { executions } = atHost();
  assert.ok(executions.expect(id(1)) && executions.expect(id(2)));
  executions.started(id(1), 5);
  executions.exited(id(1), 0);
  executions.started(id(2), 5);
  assert.equal(executions.byPid(5)?.executionId, id(2));
});

test('host: sixteen may run, those being started counted; so many that ended are kept', () => {
  const { executions, time } = atHost();
  for (let i = 1; i <= limits.execBackground; i += 1) assert.ok(executions.expect(id(i)));
  assert.equal(executions.expect(id(99)), false);
  executions.withdraw(id(1));
  assert.equal(executions.expect(id(99)), true);
  executions.withdraw(id(99));
  for (let i = 100; i < 200 + counts.exitedKept; i += 1) {
    run(executions, i);
    time.now += 1;
    executions.exited(id(i), 0);
  }
  assert.equal(executions.byId(id(199)), undefined);
  assert.equal(executions.byId(id(200))?.status, 'exited');
});

test('host: polls of one command take turns, also after one that failed', async () => {
  const { executions } = atHost();
  run(executions, 1);
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const one = executions.inTurn(id(1), async () => {
    await first.promise;
    order.push('one');
    throw new Error('broke');
  });
  const two = executions.inTurn(id(1), async (reading) => {
    order.push('two');
    reading.stdout += 5;
  });
  first.resolve();
  await assert.rejects(one as Promise<void>, /broke/);
  await two;
  assert.deepEqual(order, ['one', 'two']);
  assert.equal(await executions.inTurn(id(1), async ({ stdout }) => stdout), 5);
  assert.equal(
    executions.inTurn(id(2), async () => 0),
    undefined,
  );
});

function inGuest() {
  const time = { now: 0 };
  const letGo: string[] = [];
  const executions = new GuestExecutions(() => time.now);
  const start = (i: number) =>
    executions.admit(async () => {
      const command = { exitCode: 0, letGo: () => letGo.push(id(i)) } as unknown as Command;
      return { id: id(i), command, group: undefined, killed: false, endedAt: undefined };
    });
  return { executions, time, letGo, start };
}

test('guest: output of what ended goes after ten minutes, or when it is one of too many', async () => {
  const { executions, time, letGo, start } = inGuest();
  await start(0);
  executions.ended(await start(1));
  time.now = keepExitedMs - 1;
  executions.sweep();
  assert.deepEqual(letGo, []);
  time.now += 1;
  executions.sweep();
  assert.deepEqual(letGo, [id(1)]);
  assert.throws(() => executions.get(id(1)), { reason: 'unknown' });
  for (let i = 2; i < 4 + counts.exitedKept; i += 1) executions.ended(await start(i));
  assert.deepEqual(letGo, [id(1), id(2), id(3)]);
  assert.deepEqual(executions.running(), [id(0)]);
});

test('guest: what the host does not know is let go, running or not', async () => {
  const { executions, letGo, start } = inGuest();
  for (const i of [1, 2, 3]) await start(i);
  executions.ended(await start(4));
  executions.keepOnly([id(2)]);
  assert.deepEqual(letGo, [id(1), id(3), id(4)]);
  assert.deepEqual([executions.running(), executions.exited()], [[id(2)], []]);
});

test('guest: all output together has a bound; the oldest that ended makes room', async () => {
  const { executions, letGo, start } = inGuest();
  const room = new OutputRoom(100);
  const kept = new Map<string, number>();
  room.makeRoom = () => {
    const made = executions.makeRoom();
    if (made) room.release(kept.get(letGo.at(-1) as string) as number);
    return made;
  };
  for (const i of [1, 2, 3]) {
    kept.set(id(i), room.claim(30));
    executions.ended(await start(i));
  }
  await start(4);
  assert.equal(room.claim(50), 50);
  assert.deepEqual(letGo, [id(1), id(2)]);
  assert.equal(room.claim(60), 50, 'what runs keeps what it has');
  assert.deepEqual(letGo, [id(1), id(2), id(3)]);
  assert.equal(room.claim(1), 0);
});
