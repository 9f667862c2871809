// Background commands: started, polled, read by offset, killed with everything they started.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { limits } from '../../packages/contract/limits.ts';
import { Cgroups, ownGroup } from '../../packages/guest/cgroups.ts';
import { until } from '../support/until.ts';
import { alive, computer, context, failure, good, Rig } from './rig.ts';

const unknown = `exec_${'0'.repeat(32)}`;

test('a background command is polled by a cursor that consumes', async (t) => {
  const rig = await Rig.of(t);
  const go = rig.at('files', 'go');
  const wait = (file: string) => `while [ ! -e ${file} ]; do sleep 0.02; done`;
  const started = await rig.start(`printf one; ${wait(go)}; printf two; printf err >&2; exit 4`);
  assert.match(started.executionId, /^exec_[0-9a-f]{32}$/);
  assert.ok(started.pid > 0 && alive(started.pid));
  const { pid, executionId } = started;
  const poll = async () => good(await rig.links.poll(context, computer, pid));

  const first = await until('the first output', async () => {
    const polled = await poll();
    return polled.stdout.length > 0 && polled;
  });
  assert.deepEqual(
    [first.pid, first.executionId, String(first.stdout), first.stdoutOffset, first.more],
    [pid, executionId, 'one', 3, false],
  );
  assert.ok(!('exitCode' in first));
  assert.deepEqual([String((await poll()).stdout), (await poll()).stdoutOffset], ['', 3]);

  await writeFile(go, '');
  const last = await rig.drain(pid);
  assert.deepEqual(
    [last.exitCode, last.stdout, last.stderr, last.stdoutOffset, last.stderrOffset, last.killed],
    [4, 'two', 'err', 6, 3, false],
  );
  // Again and again, until it is forgotten.
  assert.deepEqual([(await poll()).exitCode, String((await poll()).stdout)], [4, '']);

  // By offset nothing is consumed, and everything is still there.
  const read = (stdoutOffset: number, stderrOffset: number, limit = 65_536) =>
    rig.links.readOutput(context, computer, executionId, { stdoutOffset, stderrOffset, limit });
  const whole = good(await read(0, 0));
  assert.deepEqual([String(whole.stdout), String(whole.stderr)], ['onetwo', 'err']);
  assert.deepEqual([whole.stdoutOffset, whole.stderrOffset, whole.stdoutMore], [6, 3, false]);
  const part = good(await read(2, 3, 3));
  assert.deepEqual([String(part.stdout), part.stdoutOffset, part.stdoutMore], ['etw', 5, true]);
  assert.deepEqual([String(part.stderr), part.stderrOffset, part.stderrMore], ['', 3, false]);
  const beyond = good(await read(1_000, 2 ** 52));
  assert.deepEqual([beyond.stdout.length, beyond.stdoutOffset], [0, 1_000]);
  assert.deepEqual([beyond.stderr.length, beyond.stderrOffset], [0, 2 ** 52]);
  assert.equal(beyond.diagnostic, '');
});

test('an execution is told from the host’s memory: running, then exited', async (t) => {
  const rig = await Rig.of(t);
  const { pid, executionId, status, startedAt } = await rig.start('exec sleep 60');
  assert.equal(status, 'running');
  const running = rig.links.execution(computer, executionId);
  assert.deepEqual(running, { executionId, pid, status: 'running', startedAt });
  process.kill(pid, 'SIGTERM');
  const exited = await until('it has exited', () => {
    const now = rig.links.execution(computer, executionId);
    return now?.status === 'exited' && now;
  });
  assert.equal(exited.exitCode, 143);
  assert.ok(exited.endedAt !== undefined && exited.endedAt >= startedAt);
  assert.deepEqual(
    rig.events.filter(({ type }) => type === 'execution'),
    [{ type: 'execution', execution: exited }],
  );
  assert.equal(rig.links.execution(computer, unknown), undefined);
});

test('what nobody knows is unknown by pid and by id', async (t) => {
  const rig = await Rig.of(t);
  const offsets = { stdoutOffset: 0, stderrOffset: 0, limit: 1 };
  assert.equal(failure(await rig.links.poll(context, computer, 1)), 'unknown_command');
  assert.equal(failure(await rig.links.kill(context, computer, 1)), 'unknown_command');
  assert.equal(
    failure(await rig.links.readOutput(context, computer, unknown, offsets)),
    'unknown_command',
  );
  // A foreground command has a pid too, but none that can be asked for.
  const { stdout } = await rig.exec('echo $$');
  assert.equal(failure(await rig.links.poll(context, computer, Number(stdout))), 'unknown_command');
});

test('one poll takes at most 1 MiB a stream, and polls at once share the bytes', async (t) => {
  const rig = await Rig.of(t);
  const size = 5 * limits.execChunk + 123;
  const { pid, executionId } = await rig.start(`head -c ${size} /dev/urandom; echo done >&2`);
  await until(
    'it has exited',
    () => rig.links.execution(computer, executionId)?.status === 'exited',
  );
  const polls = await Promise.all(
    Array.from({ length: 9 }, () => rig.links.poll(context, computer, pid)),
  );
  const chunks = polls.map(good).toSorted((a, b) => a.stdoutOffset - b.stdoutOffset);
  const whole = Buffer.concat(chunks.map(({ stdout }) => stdout));
  assert.equal(whole.length, size);
  assert.ok(chunks.every(({ stdout }) => stdout.length <= limits.execChunk));
  assert.deepEqual(chunks.map(({ more }) => more).slice(0, 6), [
    true,
    true,
    true,
    true,
    true,
    false,
  ]);
  let at = 0;
  const again: Buffer[] = [];
  while (at < size) {
    const asked = { stdoutOffset: at, stderrOffset: 0, limit: 1_000_000 };
    const read = good(await rig.links.readOutput(context, computer, executionId, asked));
    again.push(read.stdout);
    at = read.stdoutOffset;
  }
  assert.ok(Buffer.concat(again).equals(whole));
});

test('background output is cut at 16 MiB, to the byte, and the command runs on', async (t) => {
  const rig = await Rig.of(t);
  const cap = limits.execOutput;
  const { pid } = await rig.start(
    `head -c ${cap + 1} /dev/zero; head -c ${cap} /dev/zero >&2; exit 9`,
  );
  let [out, err] = [0, 0];
  const last = await until('it is read to its end', async () => {
    const polled = good(await rig.links.poll(context, computer, pid));
    out += polled.stdout.length;
    err += polled.stderr.length;
    return polled.exitCode !== undefined && !polled.more && polled;
  });
  assert.deepEqual([out, err, last.exitCode], [cap, cap, 9]);
  assert.deepEqual([last.outTruncated, last.errTruncated], [true, false]);
});

/** Every process number that the command wrote down. */
async function written(file: string, count: number): Promise<number[]> {
  return until(`${count} processes told their numbers`, async () => {
    // The file is there a moment before what is written to it.
    const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
    return lines.length === count && lines.map(Number);
  });
}

for (const group of ['with a cgroup', 'without one']) {
  test(`killing takes the whole tree, also what left session and group, ${group}`, async (t) => {
    const rig = await Rig.of(t, { agent: false });
    await rig.startAgent(group === 'without one' ? { CUBICLE_CGROUP: 'none' } : {});
    const pids = rig.at('files', 'pids');
    const tell = `echo $BASHPID >>${pids}; exec sleep 600`;
    const command = [
      `(${tell}) &`,
      `setsid bash -c '${tell}' &`,
      // Twice forked and in a session of its own: its parent is no longer of the tree.
      `(setsid bash -c '${tell}' </dev/null >/dev/null 2>&1 &)`,
      `echo tail; echo $$ >>${pids}; sleep 600; echo never`,
    ].join('\n');
    const { pid, executionId } = await rig.start(command);
    const all = await written(pids, 4);
    assert.ok(all.includes(pid));
    assert.ok(all.every(alive));
    const killed = good(await rig.links.kill(context, computer, pid));
    assert.deepEqual([killed.exitCode, killed.killed, killed.more], [137, true, false]);
    assert.equal(killed.stdout.toString(), 'tail\n');
    await until('all of them are gone', () => !all.some(alive));
    assert.equal(rig.links.execution(computer, executionId)?.exitCode, 137);
    // Killing what is gone tells its end again.
    const again = good(await rig.links.kill(context, computer, pid));
    assert.deepEqual([again.exitCode, again.killed, again.stdout.length], [137, true, 0]);
  });
}

const hasGroups = new Cgroups(ownGroup()).make(`test-${process.pid}`)?.remove() === true;

test(
  'with a cgroup not even what gave up its environment escapes',
  { skip: !hasGroups && 'no cgroup to divide here' },
  async (t) => {
    const rig = await Rig.of(t);
    const pids = rig.at('files', 'pids');
    const hide = `(env -i setsid bash -c 'echo $$ >${pids}; exec sleep 600' >/dev/null 2>&1 &)`;
    const { pid } = await rig.start(`${hide}; sleep 600`);
    const [hidden] = await written(pids, 1);
    good(await rig.links.kill(context, computer, pid));
    await until('it is gone', () => !alive(hidden as number));
  },
);

test('killing one command leaves every other alone', async (t) => {
  const rig = await Rig.of(t);
  const [one, two] = [await rig.start('exec sleep 600'), await rig.start('exec sleep 600')];
  good(await rig.links.kill(context, computer, one.pid));
  assert.ok(alive(two.pid));
  assert.equal(rig.links.execution(computer, two.executionId)?.status, 'running');
  const polled = good(await rig.links.poll(context, computer, two.pid));
  assert.ok(!('exitCode' in polled) && !polled.killed);
});

test('killing a command that ended takes the processes it left', async (t) => {
  const rig = await Rig.of(t);
  const pids = rig.at('files', 'pids');
  const { pid } = await rig.start(`sleep 600 & echo $! >${pids}; exit 2`);
  const [left] = await written(pids, 1);
  await rig.drain(pid);
  assert.ok(alive(left as number));
  const killed = good(await rig.links.kill(context, computer, pid));
  assert.deepEqual([killed.exitCode, killed.killed], [2, false]);
  await until('it is gone', () => !alive(left as number));
});

test('the seventeenth background command is refused, and a place is free when one ends', async (t) => {
  const rig = await Rig.of(t);
  const start = (command: string) => rig.links.execStart(context, computer, { command });
  // All at once: places are taken before anything is started.
  const results = await Promise.all(Array.from({ length: 20 }, () => start('exec sleep 600')));
  const started = results.flatMap((result) => (result.ok ? [result.execution] : []));
  assert.equal(started.length, limits.execBackground);
  const refused = results.find((result) => !result.ok);
  assert.ok(refused !== undefined && !refused.ok);
  assert.equal(refused.failure, 'too_many');
  assert.match(refused.message, /already has 16 background commands running/);
  good(await rig.links.kill(context, computer, (started[0] as { pid: number }).pid));
  assert.ok((await start('exec sleep 600')).ok);
  assert.equal(failure(await start('true')), 'too_many');
});

test('a command with a missing folder is an execution that exited with 127', async (t) => {
  const rig = await Rig.of(t);
  const { pid } = await rig.start('echo ran', { cwd: rig.at('nowhere') });
  const last = await rig.drain(pid);
  assert.deepEqual([last.exitCode, last.stdout], [127, '']);
});

test('a command that ends at once is never missed', async (t) => {
  const rig = await Rig.of(t);
  for (let i = 0; i < 30; i += 1) {
    const { executionId } = await rig.start(`exit ${i}`);
    const ended = await until('its end is told', () => {
      const execution = rig.links.execution(computer, executionId);
      return execution?.status === 'exited' && execution;
    });
    assert.equal(ended.exitCode, i);
  }
});
