import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { act, clone, finished, made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import type { TestAgent } from '../support/simulated-host.ts';
import { until } from '../support/until.ts';

suite('commands in the background', () => {
  let service: TestService;
  let as: Client;
  let id: string;
  let agent: TestAgent;
  before(async () => {
    service = await startService({ simulated: true });
    ({ as } = await service.account());
    ({ id } = await made(as));
    agent = await service.host.agentOf(id);
  });
  after(() => service.stop());

  const begin = async (command: string, more: object = {}) => {
    const answer = await as.post(`/computers/${id}/exec`, { command, background: true, ...more });
    assert.equal(answer.status, 202, answer.text);
    return answer.body;
  };
  const poll = async (pid: number) => (await as.get(`/computers/${id}/exec/${pid}`)).body;
  const execution = async (of: string) => (await as.get(`/computers/${id}/executions/${of}`)).body;
  const ended = (of: string) =>
    until('the command has ended', async () => {
      const read = await execution(of);
      return read.status === 'exited' && read;
    });
  const text = (base64: string) => Buffer.from(base64, 'base64').toString();

  test('wire-guest 3: 202 with exactly the fields of a poll, which consumes', async () => {
    const go = agent.at('go');
    const { pid, execution_id, ...rest } = await begin(
      `echo one; echo two >&2; while ! test -e ${go}; do sleep 0.05; done; echo three; exit 5`,
      // Integral and positive, and otherwise of no meaning here.
      { timeout_s: 9_007_199_254_740_991 },
    );
    assert.ok(Number.isInteger(pid) && pid > 0);
    assert.match(execution_id, /^exec_[0-9a-f]{32}$/);
    const nothing = { stdout_b64: '', stderr_b64: '', stdout_offset: 0, stderr_offset: 0 };
    const flags = { more: false, killed: false, out_truncated: false, err_truncated: false };
    assert.deepEqual(rest, { running: true, ...nothing, ...flags });
    const read = { stdout: '', stderr: '' };
    const readOn = async () => {
      const polled = await poll(pid);
      read.stdout += text(polled.stdout_b64);
      read.stderr += text(polled.stderr_b64);
      return polled;
    };
    await until('it has said something', async () => {
      await readOn();
      return read.stdout === 'one\n' && read.stderr === 'two\n';
    });
    const still = await poll(pid);
    assert.deepEqual(
      [still.running, 'exit_code' in still, still.stdout_b64, still.stdout_offset],
      [true, false, '', 4],
    );
    await as.post(`/computers/${id}/exec`, { command: `touch ${go}` });
    const last = await until('it ends', async () => {
      const polled = await readOn();
      return !polled.running && !polled.more && polled;
    });
    assert.deepEqual(
      [last.exit_code, read.stdout, last.stdout_offset, last.stderr_offset, last.killed],
      [5, 'one\nthree\n', 10, 4, false],
    );
  });

  test('wire-guest 3: a poll answers at most 1 MiB a stream, and more says that there is more', async () => {
    const length = 2 ** 20 + 1;
    const { pid, execution_id } = await begin(`head -c ${length} /dev/zero`);
    await ended(execution_id);
    const first = await poll(pid);
    assert.deepEqual([text(first.stdout_b64).length, first.more], [2 ** 20, true]);
    const second = await poll(pid);
    assert.deepEqual(
      [text(second.stdout_b64).length, second.more, second.stdout_offset],
      [1, false, length],
    );
  });

  test('wire-guest 3: a kill ends the whole tree and answers the unread end of the output', async () => {
    const marker = agent.at('child');
    const { pid, execution_id } = await begin(
      `echo begun; (sleep 1000 & echo $! > ${marker}; wait)`,
    );
    await until('it runs', async () => {
      const { body } = await as.post(`/computers/${id}/exec`, { command: `cat ${marker}` });
      return body.exit_code === 0 && text(body.stdout_b64) !== '';
    });
    const killed = (await as.delete(`/computers/${id}/exec/${pid}`)).body;
    assert.deepEqual([killed.pid, killed.killed, text(killed.stdout_b64)], [pid, true, 'begun\n']);
    await ended(execution_id);
    const child = `kill -0 $(cat ${marker})`;
    await until('its child is gone', async () => {
      const { body } = await as.post(`/computers/${id}/exec`, { command: child });
      return body.exit_code !== 0;
    });
  });

  test('wire-guest 4: an execution is read from memory: running, then exited with code and time', async () => {
    const go = agent.at('end');
    const { pid, execution_id } = await begin(`while ! test -e ${go}; do sleep 0.05; done; exit 7`);
    const running = await execution(execution_id);
    assert.deepEqual(running, {
      execution_id,
      computer_id: id,
      pid,
      status: 'running',
      started_at: running.started_at,
      output_source: 'volatile_guest_files',
    });
    await as.post(`/computers/${id}/exec`, { command: `touch ${go}` });
    const { ended_at, ...exited } = await ended(execution_id);
    assert.deepEqual(exited, { ...running, status: 'exited', exit_code: 7 });
    assert.match(ended_at, /Z$/);
  });

  test('wire-guest 4: output is read by offsets, does not consume, and is bounded', async () => {
    const { execution_id } = await begin('printf 0123456789; printf abc >&2');
    await ended(execution_id);
    const read = (query: string) =>
      as.get(`/computers/${id}/executions/${execution_id}/output?${query}`);
    const whole = (await read('stdout_offset=0&stderr_offset=0')).body;
    assert.deepEqual(whole, {
      execution_id,
      stdout_b64: Buffer.from('0123456789').toString('base64'),
      stderr_b64: Buffer.from('abc').toString('base64'),
      stdout_offset: 10,
      stderr_offset: 3,
      stdout_more: false,
      stderr_more: false,
      diagnostic_b64: whole.diagnostic_b64,
      diagnostic_truncated: false,
    });
    assert.deepEqual((await read('stdout_offset=0&stderr_offset=0')).body, whole);
    const part = (await read('stdout_offset=2&stderr_offset=0&limit=3')).body;
    assert.deepEqual(
      [text(part.stdout_b64), part.stdout_offset, part.stdout_more, part.stderr_more],
      ['234', 5, true, false],
    );
    const past = (await read('stdout_offset=99&stderr_offset=3&limit=1048576')).body;
    assert.deepEqual([past.stdout_b64, past.stdout_offset, past.stdout_more], ['', 99, false]);
    const bad = [
      ['', 'stdout_offset=0', 'stderr_offset=0', 'stdout_offset=-1&stderr_offset=0'],
      ['stdout_offset=x&stderr_offset=0', 'stdout_offset=1.5&stderr_offset=0'],
      ['stdout_offset=0&stderr_offset=0&limit=0', 'stdout_offset=0&stderr_offset=0&limit=1048577'],
      [
        'stdout_offset=0&stdout_offset=0&stderr_offset=0',
        'stdout_offset=9007199254740991&stderr_offset=0',
      ],
      ['stdout_offset=9999999999999999&stderr_offset=0'],
    ].flat();
    for (const query of bad) assertRefused(await read(query), 400);
  });

  test('wire-guest 3, wire-guest 4: an unknown command is 404, whatever it is called', async () => {
    for (const pid of ['999999999', '0', '-1', 'x', '1e3', '99999999999']) {
      assertRefused(await as.get(`/computers/${id}/exec/${pid}`), 404);
      assertRefused(await as.delete(`/computers/${id}/exec/${pid}`), 404);
    }
    for (const name of [`exec_${'0'.repeat(32)}`, 'exec_', 'x', `exec_${'G'.repeat(32)}`]) {
      const path = `/computers/${id}/executions/${name}`;
      assertRefused(await as.get(path), 404);
      assertRefused(await as.get(`${path}/output?stdout_offset=0&stderr_offset=0`), 404);
    }
    const other = await made(as, { start: false });
    service.host.engine.faults.put('copy', 'before');
    const failed = await clone(as, other.id);
    await finished(as, failed.operation_id);
    for (const where of [other.id, failed.id]) {
      assertRefused(await as.get(`/computers/${where}/executions/exec_${'0'.repeat(32)}`), 404);
    }
  });

  test('wire-guest 3: sixteen run at once; the seventeenth is 409 without a reason', async () => {
    const begun = await Promise.all(Array.from({ length: 16 }, () => begin('sleep 1000')));
    const answer = await as.post(`/computers/${id}/exec`, { command: 'true', background: true });
    assertRefused(answer, 409);
    assert.match(answer.body.error, /already has 16 background commands running/);
    assert.equal((await as.post(`/computers/${id}/exec`, { command: 'true' })).status, 200);
    const [one] = begun;
    await as.delete(`/computers/${id}/exec/${one.pid}`);
    await ended(one.execution_id);
    const { pid } = await begin('true');
    assert.ok(pid > 0);
    for (const other of begun) await as.delete(`/computers/${id}/exec/${other.pid}`);
  });

  test('wire-guest 3, wire-guest 4: what ran in a computer that was stopped is lost', async () => {
    const { pid, execution_id } = await begin('sleep 1000');
    await act(as, id, 'stop?force=true');
    assert.equal((await execution(execution_id)).status, 'lost');
    await agent.end();
    await act(as, id, 'start');
    agent = await service.host.agentOf(id);
    const lost = await execution(execution_id);
    assert.deepEqual(
      [lost.status, 'ended_at' in lost, 'exit_code' in lost],
      ['lost', false, false],
    );
    assertRefused(await as.get(`/computers/${id}/exec/${pid}`), 404);
    const path = `/computers/${id}/executions/${execution_id}/output`;
    assertRefused(await as.get(`${path}?stdout_offset=0&stderr_offset=0`), 404);
  });
});
