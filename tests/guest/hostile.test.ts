// Everything from a guest is hostile: each thing an agent must not say ends its connection, tells which
// rule it broke, fails the calls under way, and leaves the host well.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { lstat, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import test from 'node:test';
import { frameHeader } from '../../packages/contract/guest/frames.ts';
import type { Violation } from '../../packages/contract/guest/protocol-error.ts';
import { counts, sizes } from '../../packages/contract/guest/sizes.ts';
import { limits } from '../../packages/contract/limits.ts';
import { unhung, until } from '../support/until.ts';
import { FakeAgent, greeting } from './fake-agent.ts';
import { computer, context, failure, good, Rig } from './rig.ts';

const violations = (rig: Rig) =>
  rig.events.flatMap((event) => (event.type === 'violation' ? [event.violation] : []));

/** A real agent still gets through, and does its work. */
async function assertWell(rig: Rig): Promise<void> {
  await rig.startAgent();
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
}

const size32 = (size: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(size);
  return bytes;
};
const u64 = (value: number) => Buffer.concat([Buffer.alloc(4), size32(value)]);

/** Said by an agent that has greeted and was asked nothing. */
const unasked: Record<string, [Violation, (agent: FakeAgent) => void]> = {
  'bytes at random': ['frame_type', (a) => a.socket.write(Buffer.alloc(64, 0xee))],
  'an announcement of 4 GiB': [
    'frame_size',
    (a) => a.socket.write(frameHeader('data', 1, 0, 2 ** 32 - 1)),
  ],
  'a second greeting': ['frame_order', (a) => a.say('hello', 0, greeting)],
  'a request of its own': ['frame_type', (a) => a.say('open', 1, {})],
  'a ping of its own': ['frame_type', (a) => a.say('ping', 0, u64(1))],
  'a pong to no ping': ['frame_order', (a) => a.say('pong', 0, u64(1))],
  'data on no channel': ['channel_unknown', (a) => a.say('data', 7, Buffer.from('x'))],
  'an answer on no channel': ['channel_unknown', (a) => a.say('accept', 7, {})],
  'a refusal on no channel': ['channel_unknown', (a) => a.say('refuse', 7, {})],
  'an end of no channel': ['channel_unknown', (a) => a.say('end', 7)],
  'a reset of no channel': ['channel_unknown', (a) => a.say('reset', 7)],
  'credit for no channel': ['channel_unknown', (a) => a.say('credit', 7, size32(1))],
  'an event that is none': ['message', (a) => a.say('event', 0, { type: 'other' })],
  'an event with more in it': [
    'message',
    (a) => a.say('event', 0, { type: 'desktop', ready: true, x: 1 }),
  ],
  'an event that is not JSON': ['message', (a) => a.say('event', 0, Buffer.from('{"type"'))],
  'an event that is not UTF-8': [
    'message',
    (a) => a.say('event', 0, Buffer.from([0x22, 0xff, 0x22])),
  ],
  'events without end': [
    'flood',
    (a) => {
      for (let i = 0; i < 3_000; i += 1) a.say('event', 0, { type: 'desktop', ready: i % 2 === 0 });
    },
  ],
};

for (const [what, [violation, say]] of Object.entries(unasked)) {
  test(`unasked: ${what}`, async (t) => {
    const rig = await Rig.of(t, { agent: false });
    const agent = await FakeAgent.of(rig);
    say(agent);
    await agent.ended();
    await until('the host knows', () => !rig.links.connected(computer));
    assert.deepEqual(violations(rig), [violation]);
    assert.equal(rig.links.ready(computer), false);
    await assertWell(rig);
  });
}

const greetings: Record<string, object | Buffer> = {
  'not JSON': Buffer.from('hello'),
  'no object': Buffer.from('[]'),
  'a field missing': { protocol: greeting.protocol },
  'a field too many': { ...greeting, more: 1 },
  'a wrong id': { ...greeting, agent_id: 'x' },
  'a long text': { ...greeting, boot_id: 'x'.repeat(65) },
  'too many running': {
    ...greeting,
    running: Array.from({ length: 17 }, () => `exec_${'0'.repeat(32)}`),
  },
  'an exit code that cannot be': {
    ...greeting,
    exited: [{ id: `exec_${'0'.repeat(32)}`, exit_code: 256 }],
  },
  'a name from nowhere': Buffer.from(JSON.stringify(greeting).replace('}', ',"__proto__":{}}')),
};

for (const [what, hello] of Object.entries(greetings)) {
  test(`a greeting with ${what}`, async (t) => {
    const rig = await Rig.of(t);
    const agent = await FakeAgent.of(rig, { greet: false });
    agent.say('hello', 0, hello);
    await agent.ended();
    assert.deepEqual(violations(rig), ['message']);
    // The agent that was there before is still the agent.
    assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
  });
}

test('anything before the greeting', async (t) => {
  const rig = await Rig.of(t);
  const agent = await FakeAgent.of(rig, { greet: false });
  agent.say('event', 0, { type: 'desktop', ready: true });
  await agent.ended();
  assert.deepEqual(violations(rig), ['frame_order']);
  assert.equal(rig.links.ready(computer), false);
});

const told = (bytes: number) => ({ bytes, truncated: false });
const answer = (out: number, err: number) => ({
  exit_code: 0,
  stdout: told(out),
  stderr: told(err),
});

/** Said in answer to a foreground command. */
const answers: Record<string, [Violation, (agent: FakeAgent, channel: number) => void]> = {
  'data before an answer': ['frame_order', (a, c) => a.say('data', c, Buffer.from('x'), 1)],
  'an end before an answer': ['frame_order', (a, c) => a.say('end', c)],
  'two answers': [
    'frame_order',
    (a, c) => {
      a.say('accept', c, answer(1, 0));
      a.say('accept', c, answer(1, 0));
    },
  ],
  'a refusal after an answer': [
    'frame_order',
    (a, c) => {
      a.say('accept', c, answer(1, 0));
      a.say('refuse', c, { reason: 'busy', size: null, detail: '' });
    },
  ],
  'an answer of another request': ['message', (a, c) => a.say('accept', c, { pid: 3 })],
  'more output than the cap': [
    'message',
    (a, c) => a.say('accept', c, answer(limits.execOutput + 1, 0)),
  ],
  'an exit code of -2': [
    'message',
    (a, c) => a.say('accept', c, { ...answer(0, 0), exit_code: -2 }),
  ],
  'a refusal without sense': ['message', (a, c) => a.say('refuse', c, { reason: 'because' })],
  'more data than told': [
    'message',
    (a, c) => {
      a.say('accept', c, answer(1, 0));
      a.say('data', c, Buffer.from('xy'), 1);
    },
  ],
  'less data than told': [
    'message',
    (a, c) => {
      a.say('accept', c, answer(2, 0));
      a.say('data', c, Buffer.from('x'), 1);
      a.say('end', c);
    },
  ],
  'data of the other stream': [
    'message',
    (a, c) => {
      a.say('accept', c, answer(1, 1));
      a.say('data', c, Buffer.from('x'), 2);
    },
  ],
  'data after both streams': [
    'message',
    (a, c) => {
      a.say('accept', c, answer(1, 1));
      for (const stream of [1, 2, 2]) a.say('data', c, Buffer.from('x'), stream);
    },
  ],
  'data after the end': [
    'channel_unknown',
    (a, c) => {
      a.say('accept', c, answer(1, 0));
      a.say('data', c, Buffer.from('x'), 1);
      a.say('end', c);
      a.say('data', c, Buffer.from('x'), 1);
    },
  ],
  'its answer again': [
    'channel_unknown',
    (a, c) => {
      for (let i = 0; i < 2; i += 1) {
        a.say('accept', c, answer(0, 0));
        a.say('end', c);
      }
    },
  ],
  'credit of nothing': ['credit', (a, c) => a.say('credit', c, size32(0))],
  'credit beyond the window': ['credit', (a, c) => a.say('credit', c, size32(sizes.window))],
  'credit that overflows': ['credit', (a, c) => a.say('credit', c, size32(2 ** 32 - 1))],
};

for (const [what, [violation, say]] of Object.entries(answers)) {
  test(`in answer to a command: ${what}`, async (t) => {
    const rig = await Rig.of(t, { agent: false });
    const agent = await FakeAgent.of(rig);
    const running = rig.links.exec(context, computer, { command: 'true' }, 60_000);
    say(agent, await agent.asked());
    const result = await unhung('the call', running);
    // Where the answer itself was good, reading its output is what fails.
    const read = async () => {
      if (!result.ok) throw new Error(result.failure);
      const { stdout, stderr } = result;
      return [await Array.fromAsync(stdout), await Array.fromAsync(stderr)];
    };
    const late = ['data after the end', 'its answer again'].includes(what);
    if (!late) await assert.rejects(unhung('reading', read()));
    else await read().catch(() => {});
    if (!result.ok) assert.equal(result.failure, 'broken');
    await agent.ended();
    await until('the host knows', () => violations(rig).length > 0);
    assert.deepEqual(violations(rig), [violation]);
    await assertWell(rig);
  });
}

test('data beyond the credit given to a reader that rests', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  const reading = rig.links.readFile(context, computer, '/file');
  const channel = await agent.asked();
  agent.say('accept', channel, { start: 0, length: 10_000_000, size: 10_000_000 });
  const file = good(await reading);
  for (let i = 0; i < 5; i += 1) agent.say('data', channel, Buffer.alloc(sizes.payload));
  await agent.ended();
  assert.deepEqual(violations(rig), ['credit']);
  await assert.rejects(Array.fromAsync(file.content));
});

const pieces: Record<string, object> = {
  'longer than a file may be': { start: 0, length: limits.file + 1, size: limits.file + 1 },
  'beyond the end of its file': { start: 5, length: 6, size: 10 },
  'without a length but a size': { start: 0, length: null, size: 5 },
  'without a size but a length': { start: 0, length: 5, size: null },
  'of a negative length': { start: 0, length: -1, size: 5 },
  'of half a byte': { start: 0, length: 0.5, size: 5 },
};

for (const [what, piece] of Object.entries(pieces)) {
  test(`a piece of a file ${what}`, async (t) => {
    const rig = await Rig.of(t, { agent: false });
    const agent = await FakeAgent.of(rig);
    const reading = rig.links.readFile(context, computer, '/file');
    agent.say('accept', await agent.asked(), piece);
    assert.equal(failure(await reading), 'broken');
    await agent.ended();
    assert.deepEqual(violations(rig), ['message']);
  });
}

test('a file without a length that does not end', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  const reading = rig.links.readFile(context, computer, '/file');
  const channel = await agent.asked();
  agent.say('accept', channel, { start: 0, length: null, size: null });
  const file = good(await reading);
  let credit: number = sizes.window;
  agent.socket.on('data', () => {
    for (const frame of agent.heard.splice(0)) {
      if (frame.type === 'credit') credit += frame.payload.readUInt32BE(0);
    }
    for (; credit >= sizes.payload + 512; credit -= sizes.payload + 512) {
      agent.say('data', channel, Buffer.alloc(sizes.payload));
    }
  });
  agent.socket.emit('data', Buffer.alloc(0));
  let got = 0;
  await assert.rejects(async () => {
    for await (const piece of file.content) got += piece.length;
  }, /more data than was told/);
  assert.equal(got, limits.file);
  await until('the host knows', () => !rig.links.connected(computer));
  assert.deepEqual(violations(rig), ['message']);
});

const listings: Record<string, object> = {
  'a path for a name': { entries: [{ name: '../x', type: 'file', size_bytes: 1 }] },
  'a control character in a name': { entries: [{ name: 'a\u0007', type: 'file', size_bytes: 1 }] },
  'an empty name': { entries: [{ name: '', type: 'file', size_bytes: 1 }] },
  'a type of its own': { entries: [{ name: 'x', type: 'door', size_bytes: 1 }] },
  'too many entries': {
    entries: Array.from({ length: 513 }, () => ({ name: 'x', type: 'file', size_bytes: 1 })),
  },
};

for (const [what, listing] of Object.entries(listings)) {
  test(`a listing with ${what}`, async (t) => {
    const rig = await Rig.of(t, { agent: false });
    const agent = await FakeAgent.of(rig);
    const listed = rig.links.listFiles(context, computer, '/');
    const channel = await agent.asked();
    const text = Buffer.from(JSON.stringify({ truncated: false, skipped: 0, ...listing }));
    agent.say('accept', channel, { bytes: text.length });
    agent.say('data', channel, text);
    agent.say('end', channel);
    assert.equal(failure(await listed), 'broken');
    await agent.ended();
    assert.deepEqual(violations(rig), ['message']);
  });
}

test('a number of bytes written that was never sent', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  async function* source() {
    yield Buffer.from('four');
  }
  const writing = rig.links.writeFile(context, computer, '/f', { createOnly: false }, source());
  const channel = await agent.asked();
  agent.say('accept', channel, { bytes: 5 });
  agent.say('end', channel);
  assert.equal(failure(await writing), 'broken');
  await until('the host knows', () => !rig.links.connected(computer));
  assert.deepEqual(violations(rig), ['message']);
});

test('words of the guest’s own reach nobody', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  const reading = rig.links.readFile(context, computer, '/file');
  const detail = '<script>EIO</script>';
  agent.say('refuse', await agent.asked(), { reason: 'failed', size: null, detail });
  const result = await reading;
  assert.ok(!result.ok);
  assert.deepEqual(
    [result.failure, result.message],
    ['refused_file', 'The computer could not do it: error.'],
  );
});

test('an agent that answers nothing costs a bounded number of places', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  const control = new AbortController();
  const calls = Array.from({ length: counts.channels }, () =>
    rig.links.exec(control, computer, { command: 'true' }, 60_000),
  );
  assert.equal(failure(await rig.links.listFiles(context, computer, '/')), 'busy');
  control.abort(new Error('enough'));
  for (const call of calls) await assert.rejects(call, /enough/);
  // Given up, but the agent never said its last word.
  assert.equal(failure(await rig.links.listFiles(context, computer, '/')), 'busy');
  agent.socket.destroy();
  await until('the host knows', () => !rig.links.connected(computer));
  await assertWell(rig);
});

test('an agent that reads nothing makes the host keep nothing', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  agent.socket.pause();
  let given = 0;
  async function* source() {
    for (; given < 1_000; given += 1) yield Buffer.alloc(65_536);
  }
  const control = new AbortController();
  const writing = rig.links.writeFile(control, computer, '/f', { createOnly: false }, source());
  const call = rig.links.listFiles(control, computer, '/');
  let before = -1;
  await until('the host has stopped reading the source', () => {
    const still = given === before;
    before = given;
    return still && given > 0;
  });
  assert.ok(given * 65_536 <= 2 * sizes.window, `${given} pieces were taken`);
  control.abort(new Error('enough'));
  await assert.rejects(writing, /enough/);
  await assert.rejects(call, /enough/);
});

test('one that never greets is put down, and takes nobody’s place', async (t) => {
  const rig = await Rig.of(t, { helloMs: 50 });
  // The agent itself may have been late before it got in.
  const before = violations(rig);
  const silent = await FakeAgent.of(rig, { greet: false });
  await silent.ended();
  assert.deepEqual(violations(rig), [...before, 'late']);
  const half = await FakeAgent.of(rig, { greet: false });
  half.socket.write(frameHeader('hello', 0, 0, 1_000).subarray(0, 7));
  await half.ended();
  assert.deepEqual(violations(rig), [...before, 'late', 'late']);
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
});

test('few may be about to greet at once; the rest are turned away', async (t) => {
  // Nobody is put down for being late.
  const rig = await Rig.of(t, { helloMs: 600_000 });
  const waiting = await Promise.all(
    Array.from({ length: 10 }, () => FakeAgent.of(rig, { greet: false })),
  );
  await until(
    'the rest are turned away',
    () => waiting.filter(({ closed }) => closed).length === 6,
  );
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
  for (const { socket } of waiting) socket.destroy();
});

test('a flood of connections shuts the door for a while; who is in stays in', async (t) => {
  const rig = await Rig.of(t, { restMs: 300 });
  const path = rig.at('link', 'agent.sock');
  let refused = false;
  for (let i = 0; i < 500 && !refused; i += 1) {
    const socket = createConnection(path);
    await new Promise<void>((resolve) => {
      socket.once('error', () => {
        refused = true;
        resolve();
      });
      socket.once('connect', () => resolve());
    });
    socket.destroy();
  }
  assert.ok(refused, 'the door was never shut');
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
  await rig.killAgent();
  await assertWell(rig);
});

test('a name in the link folder that leads elsewhere is replaced and not followed', async (t) => {
  const rig = await Rig.of(t);
  await rig.links.stop();
  const [victim, path] = [rig.at('files', 'victim'), rig.at('link', 'agent.sock')];
  await writeFile(victim, 'safe', { mode: 0o600 });
  await symlink(victim, path);
  await rig.restartHost();
  const { mode } = await lstat(victim);
  assert.deepEqual([mode & 0o777, await readFile(victim, 'utf8')], [0o600, 'safe']);
  assert.ok((await lstat(path)).isSocket());
  assert.equal((await lstat(path)).mode & 0o666, 0o666);
  // Nothing is left beside the folder.
  const beside = (await readdir(rig.folder)).filter((name) => name.startsWith('link.'));
  assert.deepEqual(beside, []);
});

test('a half-open connection ends, and its half frame with it', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const agent = await FakeAgent.of(rig);
  const running = rig.links.exec(context, computer, { command: 'true' }, 60_000);
  const channel = await agent.asked();
  agent.socket.write(frameHeader('accept', channel, 0, 100));
  agent.socket.end('half');
  assert.equal(failure(await unhung('the call', running)), 'broken');
  await until('the host knows', () => !rig.links.connected(computer));
  await assertWell(rig);
});

test('any bytes at all after a greeting leave the host well', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  for (let i = 0; i < 20; i += 1) {
    const agent = await FakeAgent.of(rig);
    const call = rig.links.listFiles(context, computer, '/');
    const channel = await agent.asked();
    const noise = randomBytes(1 + (i % 7) * 50);
    // Half of them begin like a frame of the open channel.
    if (i % 2 === 0) agent.socket.write(frameHeader('accept', channel, 0, 1 + noise.length));
    agent.socket.end(noise);
    assert.equal(failure(await unhung('the call', call)), 'broken');
    await until('the host knows', () => !rig.links.connected(computer));
  }
  await assertWell(rig);
});
