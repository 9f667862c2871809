import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { SocketKind } from '../../packages/host/sockets/kind.ts';
import { Sockets, type SocketsParts } from '../../packages/host/sockets/sockets.ts';
import { TestSocket } from '../support/socket.ts';
import { until } from '../support/until.ts';

const echo: SocketKind = {
  most: 2,
  check: async (_context, { query }) =>
    query.has('refuse') ? { failure: 'busy', error: 'Not now.' } : undefined,
  open: (_, socket) => socket.on('message', (data) => socket.send(data)),
};

async function serve(t: TestContext, parts: Partial<SocketsParts> = {}) {
  const sockets = new Sockets({
    kinds: { screen: echo, events: { ...echo, lasting: true, farewell: (end) => `bye: ${end}` } },
    instanceOf: () => 'instance',
    guestState: async () => undefined,
    log: () => {},
    ...parts,
  });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://host');
    const kind = pathname.slice(1);
    void sockets.upgrade({ computer: 'vm-1', kind, query, request, socket, head });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(async () => {
    await sockets.stop();
    server.close();
  });
  return { sockets, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('Part 7 Conflicts 3: a kind refuses before the upgrade, and counts what it let in', async (t) => {
  const { url } = await serve(t);
  const refused = await TestSocket.refused(`${url}/screen?refuse=1`);
  assert.deepEqual([refused.status, refused.body.failure], [409, 'busy']);
  assert.equal((await TestSocket.refused(`${url}/nothing`)).status, 404);
  const open = [await TestSocket.open(`${url}/screen`), await TestSocket.open(`${url}/screen`)];
  const third = await TestSocket.refused(`${url}/screen`);
  assert.deepEqual([third.body.failure, third.body.limit], ['too_many_sockets', 2]);
  open[0]?.close();
  await until('there is room', async () => {
    const again = await TestSocket.tryOpen(`${url}/screen`);
    return again instanceof TestSocket;
  });
});

test('a caller that answers no ping is ended, and one that does stays', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { url } = await serve(t, { pingMs: 100 });
  const deaf = await TestSocket.open(`${url}/screen`, { autoPong: false });
  const good = await TestSocket.open(`${url}/screen`);
  // What it says behind its answer to a ping arrives behind it.
  const heard = async (text: string) => {
    good.raw.send(Buffer.from(text));
    assert.equal((await good.take(text.length)).toString(), text);
  };
  const pinged = [deaf, good].map(({ raw }) => once(raw, 'ping'));
  t.mock.timers.tick(100);
  await Promise.all(pinged);
  await heard('here');
  t.mock.timers.tick(100);
  assert.equal((await deaf.closing()).code, 1006);
  await heard('still here');
});

test('Part 6.2: what lasts is ended by nothing but the end of its computer, and told so', async (t) => {
  const { sockets, url } = await serve(t);
  const screen = await TestSocket.open(`${url}/screen`);
  const events = await TestSocket.open(`${url}/events`);
  sockets.changed('vm-2', 'removed');
  sockets.changed('vm-1', 'stopped');
  assert.deepEqual(await screen.closing(), { code: 4409, reason: 'stopped' });
  sockets.changed('vm-1', 'removed');
  assert.equal((await events.closing()).code, 4404);
  assert.equal(events.bytes.toString(), 'bye: removed');
});
