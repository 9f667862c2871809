// Two ends of a link in one process, with every byte on the way held back and delivered in a random order
// of chunks: whatever crosses whatever, neither end ever sees a violation, and nothing is left open.

import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { type Channel, ChannelFailure } from '../../packages/contract/guest/channel.ts';
import { Mux } from '../../packages/contract/guest/mux.ts';
import { counts, frameCost, sizes } from '../../packages/contract/guest/sizes.ts';
import { unhung } from '../support/until.ts';

const empty = Buffer.from('{}');
const context = { signal: new AbortController().signal };

/** Bytes under way in one direction. */
class Pipe {
  #held = Buffer.alloc(0);
  to: Mux | undefined;

  write = (header: Buffer, payload: Buffer): boolean => {
    this.#held = Buffer.concat([this.#held, header, payload]);
    return true;
  };

  get waiting(): number {
    return this.#held.length;
  }

  deliver(most: number): void {
    const chunk = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(chunk.length);
    this.to?.feed(chunk);
  }
}

class Pair {
  readonly toAgent = new Pipe();
  readonly toHost = new Pipe();
  readonly host: Mux;
  readonly agent: Mux;

  constructor(serve: (channel: Channel, payload: Buffer) => void) {
    this.host = new Mux('host', this.toAgent, { hello: () => this.host.hello(empty) });
    this.agent = new Mux('agent', this.toHost, { hello: () => {}, open: serve });
    this.toAgent.to = this.agent;
    this.toHost.to = this.host;
    this.agent.hello(empty);
    this.settle();
  }

  settle(): void {
    while (this.toAgent.waiting + this.toHost.waiting > 0) {
      this.toAgent.deliver(Infinity);
      this.toHost.deliver(Infinity);
    }
  }

  /** Until nothing is under way and nobody has anything more to say. */
  async run(next: () => number): Promise<void> {
    for (let quiet = 0; quiet < 100;) {
      await Promise.resolve();
      const pipes = [this.toAgent, this.toHost].filter(({ waiting }) => waiting > 0);
      if (pipes.length === 0) {
        quiet += 1;
        continue;
      }
      quiet = 0;
      pipes[next() % pipes.length]?.deliver(1 + (next() % 90_000));
    }
  }
}

/** Numbers for every choice, the same ones for the same seed. */
function choices(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 8;
  };
}

interface Plan {
  readonly up: number;
  readonly down: number;
  readonly host: 'reads all' | 'resets' | 'stops sending and resets';
  readonly agent:
    | 'answers'
    | 'ends early and reads on'
    | 'refuses at once'
    | 'refuses after'
    | 'resets half way'
    | 'throws away';
  readonly after: number;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  up: fc.nat(600_000),
  down: fc.nat(600_000),
  host: fc.constantFrom('reads all', 'resets', 'stops sending and resets'),
  agent: fc.constantFrom(
    'answers',
    'ends early and reads on',
    'refuses at once',
    'refuses after',
    'resets half way',
    'throws away',
  ),
  after: fc.nat(30),
});

async function agentSide(channel: Channel, { agent, down, after }: Plan): Promise<void> {
  if (agent === 'refuses at once') return channel.refuse(empty, undefined);
  if (agent === 'ends early and reads on') {
    for (let i = 0; i < 2 * after; i += 1) await Promise.resolve();
    channel.accept(Buffer.from('{"got":0}'));
    channel.end();
    while ((await channel.receive()) !== undefined);
    return;
  }
  let got = 0;
  for (let piece = await channel.receive(); piece !== undefined; piece = await channel.receive()) {
    got += piece.bytes.length;
    if (agent === 'throws away') throw new Error('cannot');
  }
  if (agent === 'refuses after') return channel.refuse(empty, undefined);
  const answer = Buffer.from(JSON.stringify({ got }));
  channel.accept(answer);
  const half = agent === 'resets half way' ? down >> 1 : down;
  await channel.send(1, Buffer.alloc(half, 7));
  if (agent === 'resets half way') channel.reset(new Error('broke'));
  else channel.end();
}

async function hostSide(channel: Channel, { host, up, after }: Plan): Promise<string> {
  try {
    const send = async () => {
      const all = await channel.send(0, Buffer.alloc(up, 5));
      if (all && host !== 'stops sending and resets') channel.end();
    };
    const sending = send();
    if (host === 'resets' || host === 'stops sending and resets') {
      for (let i = 0; i < after; i += 1) await Promise.resolve();
      channel.reset(new Error('enough'));
    }
    await sending;
    const { accepted, payload } = await channel.answer();
    if (!accepted) return 'refused';
    const { got } = JSON.parse(payload.toString());
    let read = 0;
    for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
      assert.ok(piece.bytes.every((byte) => byte === 7));
      read += piece.bytes.length;
    }
    return `${got} up, ${read} down`;
  } catch (error) {
    if (error instanceof ChannelFailure) return error.kind;
    if (error instanceof Error && error.message === 'enough') return 'enough';
    throw error;
  }
}

test('channels end in good order whatever crosses whatever', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(plan, { maxLength: 8 }), fc.integer(), async (plans, seed) => {
      const pair = new Pair((channel, payload) => {
        const its = plans[Number(payload.toString())] as Plan;
        agentSide(channel, its).catch((error: unknown) => channel.refuse(empty, error));
      });
      const outcomes = plans.map((its, i) => {
        const channel = pair.host.open(context, Buffer.from(String(i).padStart(2, '0')));
        assert.ok(channel);
        return hostSide(channel, its);
      });
      await pair.run(choices(seed));
      const told = await unhung('every channel', Promise.all(outcomes));
      assert.equal(pair.host.busy, 0, 'channels left at the host');
      assert.equal(pair.agent.busy, 0, 'channels left at the agent');
      plans.forEach((its, i) => {
        if (its.host !== 'reads all') return;
        const wanted = {
          'ends early and reads on': '0 up, 0 down',
          answers: `${its.up} up, ${its.down} down`,
          'refuses at once': 'refused',
          'refuses after': 'refused',
          'resets half way': 'reset',
          // What had no data to throw away is answered.
          'throws away': its.up === 0 ? `0 up, ${its.down} down` : 'refused',
        }[its.agent];
        assert.equal(told[i], wanted);
      });
    }),
    { numRuns: 150 },
  );
});

test('a sender stops at the window and goes on as the receiver reads', async () => {
  let served: Channel | undefined;
  const pair = new Pair((channel) => (served = channel));
  const channel = pair.host.open(context, empty);
  assert.ok(channel);
  const length = 3 * sizes.window;
  let sent = false;
  const sending = channel.send(0, Buffer.alloc(length)).then(() => (sent = true));
  await pair.run(choices(1));
  assert.equal(sent, false);
  assert.ok(served);
  let got = 0;
  for (let pieces = 0; got < length; pieces += 1) {
    const piece = await served.receive();
    assert.ok(piece);
    assert.ok(got <= pieces * sizes.payload + sizes.window);
    got += piece.bytes.length;
    await pair.run(choices(2));
  }
  await sending;
  assert.equal(got, length);
});

test('tiny frames are charged for, so that a window holds few of them', async () => {
  const pair = new Pair(() => {});
  const channel = pair.host.open(context, empty);
  assert.ok(channel);
  let sent = 0;
  const sending = (async () => {
    while (await channel.send(0, Buffer.alloc(1))) sent += 1;
  })();
  await pair.run(choices(1));
  assert.equal(sent, Math.floor(sizes.window / (frameCost + 1)));
  channel.reset(new Error('enough'));
  await sending;
});

test('a link has a bounded number of channels, and a place is free when one is over', async () => {
  const served: Channel[] = [];
  const pair = new Pair((channel) => served.push(channel));
  const opened = Array.from({ length: counts.channels }, () => pair.host.open(context, empty));
  assert.ok(opened.every((channel) => channel !== undefined));
  assert.equal(pair.host.open(context, empty), undefined);
  pair.settle();
  // Given up here, but the agent has not said its last word: the place is still taken.
  opened[0]?.reset(new Error('enough'));
  assert.equal(pair.host.open(context, empty), undefined);
  pair.settle();
  assert.ok(pair.host.open(context, empty));
});

test('an aborted signal gives the channel up on both sides and leaves no listener', async () => {
  let served: Channel | undefined;
  const pair = new Pair((channel) => (served = channel));
  const control = new AbortController();
  const channel = pair.host.open(control, empty);
  assert.ok(channel);
  pair.settle();
  const waiting = channel.answer();
  control.abort(new Error('no longer wanted'));
  await assert.rejects(waiting, /no longer wanted/);
  pair.settle();
  assert.equal(served?.abandoned, true);
  assert.equal(pair.host.busy + pair.agent.busy, 0);
  assert.throws(() => pair.host.open(control, empty), /no longer wanted/);
});
