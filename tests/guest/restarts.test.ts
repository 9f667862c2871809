// Either end goes away and comes back: the host daemon under a running agent, the agent under running
// commands, the connection under both.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import test from 'node:test';
import { encodeMessage } from '../../packages/contract/guest/messages.ts';
import { type Frame, FrameDecoder, frameHeader } from '../../packages/contract/guest/frames.ts';
import { limits } from '../../packages/contract/limits.ts';
import { unhung, until } from '../support/until.ts';
import { alive, Cable, computer, context, failure, good, Rig } from './rig.ts';
import { guestProtocol } from '../../packages/contract/guest/sizes.ts';

const offsets = { stdoutOffset: 0, stderrOffset: 0, limit: 1_000 };

/** Ends the agent's connection from inside the guest, by greeting in its place and leaving. */
async function takeOver(rig: Rig): Promise<void> {
  const socket = createConnection(rig.at('link', 'agent.sock'));
  const hello = encodeMessage({
    protocol: guestProtocol,
    boot_id: 'other',
    agent_id: '0'.repeat(32),
    desktop_ready: false,
    secrets: 0,
    running: [],
    exited: [],
  });
  socket.write(frameHeader('hello', 0, 0, hello.length));
  socket.write(hello);
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
}

test('a host daemon that starts again finds the agent, and knows no execution', async (t) => {
  const rig = await Rig.of(t);
  const [go, went] = [rig.at('files', 'go'), rig.at('files', 'went')];
  const command = `while [ ! -e ${go} ]; do sleep 0.02; echo on; done; touch ${went}`;
  const { pid, executionId } = await rig.start(command);
  const foreground = rig.links.exec(context, computer, { command }, 60_000);
  await rig.restartHost();
  assert.equal(failure(await unhung('the call under way', foreground)), 'broken');
  assert.equal((await rig.exec('echo back')).stdout.toString(), 'back\n');
  assert.equal(rig.links.execution(computer, executionId), undefined);
  assert.equal(failure(await rig.links.poll(context, computer, pid)), 'unknown_command');
  assert.equal(
    failure(await rig.links.readOutput(context, computer, executionId, offsets)),
    'unknown_command',
  );
  // It runs on all the same, and takes none of the new daemon's places.
  assert.ok(alive(pid));
  for (let i = 0; i < limits.execBackground; i += 1) await rig.start('exec sleep 600');
  await writeFile(go, '');
  await until('the old command ended well', () => readFile(went));
  await until('and is gone', () => !alive(pid));
});

test('a lost connection loses no background command, no byte, and no exit code', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const cable = new Cable(rig.at('cable'), rig.at('link', 'agent.sock'));
  t.after(() => cable.close());
  await rig.startAgent({ CUBICLE_LINK: rig.at('cable') });
  const go = rig.at('files', 'go');
  const wait = `while [ ! -e ${go} ]; do sleep 0.02; done`;
  const slow = await rig.start(`echo before; ${wait}; echo after; exit 7`);
  const events = () => rig.events.filter(({ type }) => type === 'agent').length;
  await until('the first line', async () =>
    String(good(await rig.links.poll(context, computer, slow.pid)).stdout).includes('before'),
  );
  const before = events();
  cable.cut();
  await until('the agent is away', () => !rig.links.connected(computer));
  assert.equal(failure(await rig.links.poll(context, computer, slow.pid)), 'no_agent');
  // It ends while nobody listens.
  await writeFile(go, '');
  await until('it is gone', () => !alive(slow.pid));
  cable.mend();
  await unhung('the agent is back', rig.links.whenConnected(context, computer));
  assert.ok(events() >= before + 2);
  // Told by the greeting, or right after one that was on its way already.
  const ended = await until('its end is told', () => {
    const execution = rig.links.execution(computer, slow.executionId);
    return execution?.status !== 'running' && execution;
  });
  assert.deepEqual([ended.status, ended.exitCode], ['exited', 7]);
  const last = await rig.drain(slow.pid);
  assert.deepEqual([last.stdout, last.exitCode], ['after\n', 7]);
});

test('what ends between the agent’s greeting and the host’s is told all the same', async (t) => {
  const rig = await Rig.of(t);
  const go = rig.at('files', 'go');
  const { executionId } = await rig.start(`while [ ! -e ${go} ]; do sleep 0.02; done; exit 6`);
  await rig.links.stop();
  const said: Frame[] = [];
  const server = createServer((socket) => {
    const decoder = new FrameDecoder('agent');
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => decoder.push(chunk, (frame) => said.push(frame)));
  }).listen(rig.at('link', 'agent.sock'));
  t.after(() => rig.killAgent().then(() => server.close()));
  const greeted = await until('the agent greets', () => said[0]?.payload.toString());
  assert.ok(greeted.includes(`"running":["${executionId}"]`), greeted);
  await writeFile(go, '');
  const told = await until('the end is told', () => said[1]?.payload.toString());
  assert.deepEqual(JSON.parse(told), {
    type: 'exited',
    execution_id: executionId,
    exit_code: 6,
  });
});

test('an agent that is killed loses its commands, and the next one says so', async (t) => {
  const rig = await Rig.of(t);
  const { pid, executionId } = await rig.start('exec sleep 600');
  const ended = await rig.start('exit 3');
  await rig.drain(ended.pid);
  const foreground = rig.links.exec(context, computer, { command: 'sleep 600' }, 60_000);
  await rig.killAgent();
  assert.equal(failure(await unhung('the call under way', foreground)), 'broken');
  // Until another agent has spoken nobody knows what became of it.
  assert.equal(rig.links.execution(computer, executionId)?.status, 'running');
  await rig.startAgent();
  const lost = rig.links.execution(computer, executionId);
  assert.equal(lost?.status, 'lost');
  assert.ok(!('endedAt' in lost) && !('exitCode' in lost));
  assert.deepEqual(
    rig.events.findLast(({ type }) => type === 'execution'),
    {
      type: 'execution',
      execution: lost,
    },
  );
  assert.equal(failure(await rig.links.poll(context, computer, pid)), 'unknown_command');
  assert.equal(
    failure(await rig.links.readOutput(context, computer, executionId, offsets)),
    'unknown_command',
  );
  // What had ended stays as it was told, though its output is gone.
  assert.equal(rig.links.execution(computer, ended.executionId)?.exitCode, 3);
  assert.equal(failure(await rig.links.poll(context, computer, ended.pid)), 'unknown_command');
  // A lost one takes no place.
  for (let i = 0; i < limits.execBackground; i += 1) await rig.start('exec sleep 600');
});

test('a guest that was stopped has lost what ran in it', async (t) => {
  const rig = await Rig.of(t);
  const { executionId } = await rig.start('exec sleep 600');
  await rig.killAgent();
  rig.links.stopped(computer);
  assert.equal(rig.links.execution(computer, executionId)?.status, 'lost');
});

test('whoever greets last is the agent; the one before is put down and comes back', async (t) => {
  const rig = await Rig.of(t);
  const { executionId } = await rig.start('exec sleep 600');
  await takeOver(rig);
  await until('the agent is back', async () => (await rig.links.ping(context, computer)).ok);
  // The impostor knew of nothing, so it counts as lost; the agent is told to forget it.
  assert.equal(rig.links.execution(computer, executionId)?.status, 'lost');
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
});

test('an agent of another protocol is told so and makes way', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const socket = createConnection(rig.at('link', 'agent.sock'));
  const hello = encodeMessage({
    protocol: guestProtocol + 1,
    // Whatever else it says.
    from: 'another time',
  });
  socket.write(frameHeader('hello', 0, 0, hello.length));
  socket.write(hello);
  const told: Buffer[] = [];
  for await (const chunk of socket) told.push(chunk);
  assert.match(
    Buffer.concat(told).subarray(10).toString(),
    new RegExp(`^\\{"protocol":${guestProtocol},`),
  );
  assert.equal(rig.links.connected(computer), false);
  assert.equal(rig.links.ready(computer), false);
});

test('a host that comes back many times is found each time', async (t) => {
  const rig = await Rig.of(t);
  for (let i = 0; i < 5; i += 1) {
    await rig.restartHost();
    assert.equal((await rig.exec(`echo ${i}`)).stdout.toString(), `${i}\n`);
  }
});
