import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { sql } from '../../packages/server/db/database.ts';
import { FakeAgent, greeting } from '../guest/fake-agent.ts';
import { assertRefused } from '../support/assertions.ts';
import type { Answer, Client } from '../support/client.ts';
import { act, acted, clone, computer, finished, made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** Each call into a guest, with the path of a file that is there. */
const waking: Record<string, (as: Client, id: string, file: string) => Promise<Answer>> = {
  exec: (as, id) => as.post(`/computers/${id}/exec`, { command: 'true' }),
  background: (as, id) => as.post(`/computers/${id}/exec`, { command: 'true', background: true }),
  read: (as, id, file) => as.get(`/computers/${id}/files?path=${file}`),
  write: (as, id, file) => as.send('PUT', `/computers/${id}/files?path=${file}`, { raw: 'new' }),
};
const sleeping: typeof waking = {
  poll: (as, id) => as.get(`/computers/${id}/exec/1`),
  kill: (as, id) => as.delete(`/computers/${id}/exec/1`),
  output: (as, id) =>
    as.get(
      `/computers/${id}/executions/exec_${'0'.repeat(32)}/output?stdout_offset=0&stderr_offset=0`,
    ),
  list: (as, id) => as.get(`/computers/${id}/files/list?path=/`),
  'read without waking': (as, id, file) => as.get(`/computers/${id}/files?path=${file}&no_wake=1`),
  'write without waking': (as, id, file) =>
    as.send('PUT', `/computers/${id}/files?path=${file}&no_wake=1`, { raw: 'new' }),
};
const all = Object.entries({ ...waking, ...sleeping });

suite('whether a guest can be called', () => {
  let service: TestService;
  before(async () => {
    service = await startService({ simulated: true });
  });
  after(() => service.stop());

  const kinds = async (as: Client) =>
    (await as.get('/operations?limit=100')).body.operations.map(
      ({ kind }: { kind: string }) => kind,
    );

  /** Suspended, with an agent that answers once it runs. */
  async function suspended() {
    const { as } = await service.account();
    const { id } = await made(as);
    const agent = await service.host.agentOf(id);
    const file = agent.at('file');
    await writeFile(file, 'content');
    await acted(as, id, 'suspend');
    return { as, id, file, agent };
  }

  test('wire-guest 0: one that does not run is 409 unavailable on every call, and no operation is recorded', async () => {
    const { as } = await service.account();
    const stopped = (await made(as, { start: false })).id;
    service.host.engine.faults.put('copy', 'before');
    const failed = await clone(as, stopped);
    await finished(as, failed.operation_id);
    service.host.engine.faults.put('copy', 'hang');
    const building = (await clone(as, stopped)).id;
    const half = (await made(as)).id;
    service.host.engine.faults.put('delete', 'half');
    await as.delete(`/computers/${half}`);
    const recorded = await kinds(as);
    for (const id of [stopped, failed.id, building, half]) {
      for (const [name, call] of all) {
        const answer = await call(as, id, '/etc/hostname');
        assert.equal(answer.body.reason, 'unavailable', `${name}: ${answer.text}`);
        assertRefused(answer, 409, 'unavailable');
      }
    }
    assert.deepEqual(await kinds(as), recorded);
  });

  test('wire-guest 0: the wake table: commands and file bytes resume a suspended one, the rest is 409 and leaves it so', async () => {
    const { as, id, file } = await suspended();
    for (const [name, call] of Object.entries(sleeping)) {
      assertRefused(await call(as, id, file), 409, 'unavailable');
      assert.equal((await computer(as, id)).status, 'suspended', name);
    }
    for (const [name, call] of Object.entries(waking)) {
      const answer = await call(as, id, file);
      assert.ok(answer.status < 300, `${name}: ${answer.text}`);
      assert.equal((await computer(as, id)).status, 'running', name);
      assert.equal((await kinds(as))[0], 'start', 'resuming is recorded');
      assert.equal((await as.get('/account')).body.usage.running_or_reserved_ram_mb, 512);
      await acted(as, id, 'suspend');
    }
    await acted(as, id, 'start');
    assert.equal((await as.get(`/computers/${id}/files?path=${file}`)).text, 'new');
  });

  test('wire-guest 4: an execution is told of a suspended computer too', async () => {
    const { as, id } = await suspended();
    const begun = await as.post(`/computers/${id}/exec`, { command: 'true', background: true });
    await acted(as, id, 'suspend');
    const read = await as.get(`/computers/${id}/executions/${begun.body.execution_id}`);
    assert.equal(read.status, 200);
    assert.equal((await computer(as, id)).status, 'suspended');
  });

  test('wire-guest 0: what keeps it from being resumed is told: the plan, the host’s room, its failure, its silence', async () => {
    const { as, id, file } = await suspended();
    await service.operator.setPlan('swarm', { ram_pool_mb: 0 });
    for (const call of Object.values(waking)) assertRefused(await call(as, id, file), 402);
    await service.operator.setPlan('swarm', { ram_pool_mb: 409_600 });
    const { faults } = service.host.engine;
    const room = (ramMb: number) =>
      service.database.run(sql('UPDATE hosts SET ram_mb = $1'), [ramMb]);
    await room(0);
    for (const call of Object.values(waking)) assertRefused(await call(as, id, file), 503);
    await room(service.host.row.ram_mb);
    for (const call of Object.values(waking)) {
      faults.put('start', 'before');
      const failed = await call(as, id, file);
      assertRefused(failed, 503, undefined, { operation_id: failed.body.operation_id });
      assert.match(failed.body.error, /could not/);
      service.host.cable.fault('start', 'unasked');
      const unheard = await call(as, id, file);
      assertRefused(unheard, 503, undefined, { operation_id: unheard.body.operation_id });
      assert.match(unheard.body.error, /in time/);
    }
    assert.equal((await computer(as, id)).status, 'suspended');
  });

  test('wire-guest 0: of several calls at once one resumes it and the others wait, also for a host that is busy', async () => {
    const { as, id, file } = await suspended();
    service.host.engine.faults.put('start', 'before', { kind: 'busy' });
    const calls = Object.values(waking).flatMap((call) => [call, call]);
    for (const answer of await Promise.all(calls.map((call) => call(as, id, file)))) {
      assert.ok(answer.status < 300, answer.text);
    }
  });

  test('wire-guest 0: a silent agent soon after a start or restart is 409 starting', async () => {
    const { as } = await service.account();
    const { id } = await made(as);
    for (const [name, call] of all) {
      if (['poll', 'kill', 'output'].includes(name)) continue;
      assertRefused(await call(as, id, '/etc/hostname'), 409, 'starting');
    }
    const agent = await service.host.agentOf(id);
    assert.equal((await waking['exec']?.(as, id, ''))?.status, 200);
    await agent.end();
    await until('the agent is gone', async () => {
      const answer = await waking['exec']?.(as, id, '');
      return answer?.status === 409 && answer.body.reason === 'starting';
    });
  });

  test('wire-guest 0, Part 7: a host that is away is 503 on every call', async () => {
    const { as, id, file } = await suspended();
    await acted(as, id, 'start');
    await service.host.cable.cut();
    for (const [, call] of all) assertRefused(await call(as, id, file), 503);
    const path = `/computers/${id}/executions/exec_${'0'.repeat(32)}`;
    assertRefused(await as.get(path), 503);
    await service.host.cable.mend();
    assert.equal((await waking['read']?.(as, id, file))?.text, 'content');
  });

  /** One whose agent says what a test wants. */
  async function withFakeAgent() {
    const { as } = await service.account();
    const { id } = await made(as);
    const agent = new FakeAgent(await service.host.linkOf(id));
    agent.say('hello', 0, greeting);
    await until('the host greets', () => agent.heard.length > 0);
    return { as, id, agent };
  }

  test('wire-guest 0, wire-guest 9: what an agent refuses keeps its meaning: busy is contention, no links is unsupported', async () => {
    const { as, id, agent } = await withFakeAgent();
    let asked = 0;
    const refusing = async (call: Promise<Answer>, reason: string) => {
      asked += 1;
      agent.say('refuse', await agent.asked(asked), { reason, size: null, detail: '' });
      return call;
    };
    for (const [name, call] of all) {
      if (['poll', 'kill', 'output'].includes(name)) continue;
      assertRefused(await refusing(call(as, id, '/file'), 'busy'), 409, 'contention');
    }
    const path = `/computers/${id}/files?path=/file&overwrite=false`;
    const createOnly = as.send('PUT', path, { raw: 'x' });
    assertRefused(await refusing(createOnly, 'no_links'), 409, 'unsupported');
    agent.socket.destroy();
  });

  test('wire-guest 0, Part 7: an agent that breaks the protocol, or goes away under a call, is 502', async () => {
    for (const [name, call] of all) {
      if (['poll', 'kill', 'output'].includes(name)) continue;
      const { as, id, agent } = await withFakeAgent();
      const answered = call(as, id, '/file');
      await agent.asked();
      if (name === 'list') agent.socket.destroy();
      else agent.say('refuse', await agent.asked(), { reason: 'because' });
      assertRefused(await answered, 502);
      agent.socket.destroy();
      await act(as, id, 'stop?force=true');
    }
  });
});
