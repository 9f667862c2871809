// Uploads that do not come as they should: every one is answered, and leaves nothing.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { made } from '../support/computers.ts';
import { startService, type TestOptions, type TestService } from '../support/service.ts';
import type { TestAgent } from '../support/simulated-host.ts';
import { unhung, until } from '../support/until.ts';

suite('uploads cut short', () => {
  let place: Place;
  before(async () => {
    place = await newPlace();
  });
  after(() => place.service.stop());

  interface Place {
    readonly service: TestService;
    readonly key: string;
    readonly id: string;
    readonly agent: TestAgent;
  }

  async function newPlace(options: TestOptions = {}): Promise<Place> {
    const service = await startService({ simulated: true, ...options });
    const { as, key } = await service.account();
    const { id } = await made(as);
    return { service, key: key.raw, id, agent: await service.host.agentOf(id) };
  }

  /** The head of an upload; the body is the test's to send. */
  async function begin(
    { service, key, id, agent }: Place,
    name: string,
    headers: readonly string[],
  ): Promise<Socket> {
    const { hostname, port } = new URL(service.baseUrl);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    const path = `/api/v1/computers/${id}/files?path=${agent.at(name)}`;
    const head = [`PUT ${path} HTTP/1.1`, `Host: ${hostname}`, `Authorization: Bearer ${key}`];
    socket.write(`${[...head, ...headers].join('\r\n')}\r\n\r\n`);
    socket.on('error', () => {});
    return socket;
  }

  async function answer(socket: Socket): Promise<{ status: number; error: string }> {
    let read = '';
    socket.setEncoding('utf8').on('data', (text: string) => (read += text));
    await unhung('the answer', once(socket, 'close'));
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(read)?.[1]);
    const body = read.slice(read.indexOf('{'), read.lastIndexOf('}') + 1);
    return { status, error: JSON.parse(body).error };
  }

  async function leavesNothing({ agent }: Place, name: string): Promise<void> {
    await until('the temporary file is gone', async () => {
      const names = await readdir(agent.folder);
      return !names.some((each) => each === name || each.startsWith('.cubicle'));
    });
  }

  test('wire-guest 9, Part 7: one that stalls is 408', async () => {
    const hasty = await newPlace({ bodyTimes: { idleMs: 300, totalMs: 60_000 } });
    const socket = await begin(hasty, 'stalled', ['Content-Length: 100']);
    socket.write('half');
    const { status, error } = await answer(socket);
    assert.equal(status, 408, error);
    await leavesNothing(hasty, 'stalled');
    await hasty.service.stop();
  });

  test('wire-guest 9, Part 7: one without a length that grows past 64 MiB is 413', async () => {
    const socket = await begin(place, 'endless', ['Transfer-Encoding: chunked']);
    const answered = answer(socket);
    const closed = once(socket, 'close');
    const piece = Buffer.concat([
      Buffer.from('100000\r\n'),
      Buffer.alloc(2 ** 20),
      Buffer.from('\r\n'),
    ]);
    for (let n = 0; n < 65 && socket.writable; n += 1) {
      if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), closed]);
    }
    const { status, error } = await answered;
    assert.equal(status, 413, error);
    assert.match(error, /64 MiB/);
    await leavesNothing(place, 'endless');
  });

  test('wire-guest 9: one whose sender ends it half way is 400', async () => {
    const socket = await begin(place, 'cut', ['Content-Length: 100']);
    socket.end('half');
    const { status, error } = await answer(socket);
    assert.equal(status, 400, error);
    await leavesNothing(place, 'cut');
  });
});
