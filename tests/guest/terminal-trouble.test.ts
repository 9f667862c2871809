// Terminals when something goes wrong: too much input, slow readers, killed processes, either end restarted,
// an agent that lies.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sizes } from '../../packages/contract/guest/sizes.ts';
import { limits } from '../../packages/contract/limits.ts';
import { until } from '../support/until.ts';
import { FakeAgent } from './fake-agent.ts';
import { Rig } from './rig.ts';
import { type Client, TerminalRig } from './terminal-client.ts';

const MB = 1_000_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function ownMemory(pid: number | undefined): number {
  const [, kB] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kB) * 1_024;
}

/** What is garbage takes a moment to be gone, so it is looked at until it rests. */
async function buffersHeld(): Promise<number> {
  let [last, still] = [-1, 0];
  return until('memory rests', () => {
    collect();
    const now = process.memoryUsage().arrayBuffers;
    still = now === last ? still + 1 : 0;
    last = now;
    return still > 10 && now;
  });
}

/** The process that holds a session. */
function holderOf({ rig }: TerminalRig, session: string): number | undefined {
  const wanted = `\0-\0${rig.at('exec', 'terminals', session)}\0`;
  const found = readdirSync('/proc').find((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'latin1').endsWith(wanted);
    } catch {
      return false;
    }
  });
  return found === undefined ? undefined : Number(found);
}

/** A shell that reads nothing until the file `go` is there. */
async function deaf(rig: TerminalRig, client: Client, then: string): Promise<() => Promise<void>> {
  const go = rig.rig.at('files', 'go');
  await client.calm();
  client.type(`stty raw; echo rea""dy; while [ ! -e ${go} ]; do sleep 0.02; done; ${then}\n`);
  await client.shows(/ready/);
  return () => writeFile(go, '');
}

test('Part 4 Terminal: input beyond 1 MiB overflows; the shell lives and gets what was accepted', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  const count = rig.rig.at('files', 'count');
  const go = await deaf(rig, client, `head -c 1000000 | wc -c >${count}; exec sleep 600`);
  client.attachment.input(Buffer.alloc(limits.terminalInput, 'x'));
  assert.equal(client.closed, undefined);
  client.attachment.input(Buffer.alloc(limits.terminalInput, 'y'));
  const [frame, ...more] = client.frames;
  assert.deepEqual(more, []);
  assert.ok(frame?.type === 'error' && frame.reason === 'input_overflow' && frame.message !== '');
  assert.ok(client.closed);
  client.attachment.leave();
  await go();
  assert.equal(await until('it was read', () => readFileSync(count, 'utf8') || false), '1000000\n');
  assert.ok((await rig.open()).attachment);
});

test('what pends is the session’s: whoever comes next may send that much less', async (t) => {
  const rig = await TerminalRig.of(t);
  await deaf(rig, await rig.open(), 'exit');
  const frame = await until('a first frame is too much', async () => {
    const client = await rig.open();
    client.attachment.input(Buffer.alloc(limits.terminalInput, 'x'));
    const [error] = client.frames;
    client.attachment.leave();
    return error;
  });
  assert.ok(frame.type === 'error' && frame.reason === 'input_overflow');
});

test('Part 4 Terminal: input that never reached the pty is told as lost', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  const go = await deaf(rig, client, 'exit 6');
  client.attachment.input(Buffer.alloc(600_000, 'x'));
  await go();
  assert.deepEqual(await client.ends(), { type: 'exit', code: 6, input_lost: true });
});

test('a million keys that nobody reads cost their bytes and no more', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await deaf(rig, client, 'exit');
  await buffersHeld();
  const before = process.memoryUsage();
  for (let i = 0; i < 1_000_000; i += 1) client.attachment.input(Buffer.of(120));
  // What is garbage is given back when the collector comes to it.
  await until('what is held is small', () => {
    collect();
    const after = process.memoryUsage();
    const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    return grown < 5 * MB;
  });
  assert.equal(client.closed, undefined);
});

test('a stalled reader stalls its own program, and nobody’s memory grows', async (t) => {
  const rig = await TerminalRig.of(t);
  const other = await rig.open('other');
  await other.calm();
  const client = await rig.open();
  await client.calm();
  const before = await buffersHeld();
  const agentBefore = ownMemory(rig.rig.agent?.pid);
  client.reading = false;
  client.type('echo $$; exec yes a line of some length that is written without end\n');
  const [, pid] = await client.shows(/^(\d+)\r\n/);
  const written = () => /^wchar: \d+$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[0];
  let [last, still]: [string | undefined, number] = ['', 0];
  await until('it has stopped writing', () => {
    const now = written();
    still = now === last ? still + 1 : 0;
    last = now;
    return still > 30;
  });
  const held = (await buffersHeld()) - before;
  const grown = ownMemory(rig.rig.agent?.pid) - agentBefore;
  const holder = ownMemory(holderOf(rig, 'main'));
  t.diagnostic(`host ${held} bytes, agent +${grown} bytes, holder ${holder} bytes of its own`);
  // A window, and what of it was cut off in the middle.
  assert.ok(held <= 2 * sizes.window, `the host holds ${held} bytes`);
  assert.ok(grown < 10 * MB, `the agent grew by ${grown} bytes`);
  assert.ok(holder < 15 * MB, `the holder has ${holder} bytes`);
  other.type('echo un""troubled\n');
  await other.shows(/untroubled/);
  // Another reader has the session at once, however stuck the one before is.
  const next = await rig.open();
  assert.equal(client.closed?.code, 1000);
  await next.shows(/without end\r\na line/);
  next.type('\u0003');
  assert.deepEqual(await next.ends(), { type: 'exit', code: 130 });
});

test('output of 60 MB passes whole through a slow reader and leaves the agent small', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  const file = rig.rig.at('files', 'large');
  const large = Buffer.from(randomBytes(45 * MB).toString('base64'));
  await writeFile(file, large);
  client.type('stty -opost; echo rea""dy\n');
  await client.shows(/ready\n/);
  const agentBefore = ownMemory(rig.rig.agent?.pid);
  const shown = createHash('sha256');
  let [length, most] = [0, 0];
  client.output = (bytes) => {
    shown.update(bytes);
    length += bytes.length;
    if (length % MB >= bytes.length) return true;
    most = Math.max(most, ownMemory(rig.rig.agent?.pid) - agentBefore);
    setImmediate(() => client.attachment.drained());
    return false;
  };
  client.type(`cat ${file}\n`);
  await until('all of it was shown', () => length >= large.length);
  assert.equal(shown.digest('hex'), createHash('sha256').update(large).digest('hex'));
  t.diagnostic(`agent +${(most / MB).toFixed(1)} MB`);
  assert.ok(most < 15 * MB, `the agent grew by ${most} bytes`);
});

test('output without end and without a reader attached costs what is kept', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type('echo $$; exec yes a line of some length that is written without end\n');
  const [, pid] = await client.shows(/^(\d+)\r\n/);
  client.attachment.leave();
  const written = () =>
    Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
  await until('it wrote 30 MB', () => written() > 30 * MB);
  const own = ownMemory(holderOf(rig, 'main'));
  assert.ok(own < 15 * MB, `${own} bytes`);
});

test('a holder that is killed ends its session, and the name is free', async (t) => {
  const rig = await TerminalRig.of(t);
  const clients = [];
  for (let i = 0; i < limits.terminalSessions; i += 1) clients.push(await rig.open(`s${i}`));
  const victim = clients[0] as Client;
  await victim.calm();
  victim.type('echo $$\n');
  const [, shell] = await victim.shows(/^(\d+)\r\n/);
  process.kill(holderOf(rig, 's0') as number, 'SIGKILL');
  const frame = await victim.ends();
  assert.deepEqual([frame?.type, victim.closed?.code], ['error', 1011]);
  await until('its shell is hung up', () => {
    try {
      return / Z /.test(readFileSync(`/proc/${shell}/stat`, 'latin1'));
    } catch {
      return true;
    }
  });
  // What it left takes no place, by another name or its own.
  const other = await rig.open('other');
  other.type('exit\n');
  await other.ends();
  const again = await rig.open('s0');
  again.type('echo an""ew\n');
  await again.shows(/anew/);
});

test('a holder that does not answer is a terminal that cannot be reached', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  const holder = holderOf(rig, 'main') as number;
  process.kill(holder, 'SIGSTOP');
  const refusal = await rig.refused();
  assert.deepEqual([refusal.status, refusal.reason], [502, undefined]);
  // The others are well, and it counts while it lives.
  await Promise.all(Array.from({ length: 7 }, (_, i) => rig.open(`s${i}`)));
  assert.equal((await rig.refused('ninth')).status, 409);
  process.kill(holder, 'SIGCONT');
  const back = await rig.open();
  back.type('echo ba""ck\n');
  await back.shows(/back/);
});

test('sessions outlive the agent', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  for (let i = 1; i < limits.terminalSessions; i += 1) await rig.open(`s${i}`);
  const go = rig.rig.at('files', 'go');
  const wait = `while [ ! -e ${go} ]; do sleep 0.02; done`;
  client.type(`here=still; echo be""gun; ${wait}; echo mean""while\n`);
  await client.shows(/begun/);
  await rig.rig.killAgent();
  await until('the client is told', () => client.closed);
  assert.equal(client.closed?.code, 1012);
  assert.equal((await rig.refused()).status, 502);
  await writeFile(go, '');
  await rig.rig.startAgent();
  const back = await rig.open();
  await back.shows(/meanwhile\r\n$/);
  back.type('echo $here\n');
  await back.shows(/still/);
  assert.equal((await rig.refused('ninth')).status, 409);
});

test('sessions outlive the host daemon', async (t) => {
  const rig = await TerminalRig.of(t);
  const client = await rig.open();
  await client.calm();
  client.type('here=still; echo s""et\n');
  await client.shows(/set/);
  await rig.rig.restartHost();
  assert.equal(client.closed?.code, 1012);
  rig.newTerminals();
  const back = await rig.open();
  back.type('echo $here\n');
  await back.shows(/still/);
});

test('an agent that lies about a terminal loses its connection', async (t) => {
  const lies: Record<string, (agent: FakeAgent, channel: number) => void> = {
    'input taken that never was': (agent, channel) =>
      agent.say('data', channel, { type: 'taken', bytes: 11 }, 1),
    'an exit code beyond all': (agent, channel) =>
      agent.say('data', channel, { type: 'exited', code: 256 }, 1),
    'news that is none': (agent, channel) =>
      agent.say('data', channel, { type: 'detached', reason: 'x' }, 1),
    'data of another stream': (agent, channel) => agent.say('data', channel, Buffer.from('x'), 2),
  };
  for (const [name, lie] of Object.entries(lies)) {
    const rig = new TerminalRig(await Rig.of(t, { agent: false }));
    const agent = await FakeAgent.of(rig.rig);
    const opening = rig.open();
    const channel = await agent.asked();
    agent.say('accept', channel, { pending: 10, lost_race: false });
    const client = await opening;
    agent.say('data', channel, { type: 'taken', bytes: 10 }, 1);
    lie(agent, channel);
    await agent.ended();
    await until('the client is told', () => client.closed);
    assert.equal(client.closed?.code, 1011, name);
    assert.ok(rig.rig.events.some(({ type }) => type === 'violation'));
  }
});
