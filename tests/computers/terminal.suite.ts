// The terminal socket of a real computer.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { ComputerGround } from './ground.ts';
import { ClientSocket, SuiteSockets } from './socket.ts';

export function terminals(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  const sockets = new SuiteSockets();
  before(async () => {
    ground = theGround();
    id = await ground.desktop({ size: 'medium' });
  });

  const url = async () => (await ground.as.get(`/computers/${id}`)).body.terminal_url as string;
  const attach = async (query = '') => sockets.open((await url()) + query);
  const typed = (socket: ClientSocket, text: string) => socket.socket.send(Buffer.from(text));

  test('Part 4 Terminal: a login shell of the desktop’s user, of the size asked for and then another', async () => {
    const socket = await attach('&cols=100&rows=30&session=first');
    typed(socket, 'echo "$(id -un) $(stty size) $DISPLAY"\n');
    await socket.shows('user 30 100 :0');
    socket.socket.send(JSON.stringify({ type: 'resize', cols: 77, rows: 22 }));
    // Both go their own ways.
    typed(socket, 'while [ "$(stty size)" != "22 7""7" ]; do sleep 0.1; done; stty size\n');
    await socket.shows('22 77');
    typed(socket, 'exit 7\n');
    const exit = await socket.frame('the shell ends', ({ type }) => type === 'exit');
    assert.deepEqual(exit, { type: 'exit', code: 7 });
    assert.equal(await socket.ended(), 1000);
  });

  test('Part 4 Terminal: a session outlives its socket, shows what it showed, and goes to whoever came last', async () => {
    const first = await attach();
    typed(first, 'echo mark-$((40+2)); x=kept\n');
    await first.shows('mark-42');
    const second = await attach();
    const detached = await first.frame('it is displaced', ({ type }) => type === 'detached');
    assert.equal(typeof detached.reason, 'string');
    assert.equal(await first.ended(), 1000);
    await second.shows('mark-42');
    typed(second, 'echo still-$x\n');
    await second.shows('still-kept');
  });

  test('Part 4 Terminal: sessions survive the host daemon and the suspension of their computer', async () => {
    const first = await attach();
    typed(first, 'y=alive; echo set-$y\n');
    await first.shows('set-alive');
    await ground.kill('host');
    await first.ended();
    const afterwards = await sockets.reopen(url);
    typed(afterwards, 'echo again-$y\n');
    await afterwards.shows('again-alive');
    await ground.post(`/computers/${id}/suspend`);
    await afterwards.ended();
    await ground.post(`/computers/${id}/start`);
    const resumed = await attach();
    typed(resumed, 'echo resumed-$y\n');
    await resumed.shows('resumed-alive');
  });

  test('Part 4 Terminal, Part 8 Sizes: a ninth session is refused, a name that is none too', async () => {
    const address = await url();
    for (let n = 1; n <= 7; n += 1) await attach(`&session=s${n}`);
    const ninth = await ClientSocket.attempt(`${address}&session=one-more`);
    assert.ok(!(ninth instanceof ClientSocket));
    assert.deepEqual([ninth.status, ninth.body['reason']], [409, undefined]);
    for (const query of ['&session=..%2Fx', '&session=', '&cols=x']) {
      const bad = await ClientSocket.attempt(address + query);
      assert.ok(!(bad instanceof ClientSocket));
      assert.equal(bad.status, 400, query);
    }
  });

  test('Part 4 Terminal: a suspended computer is 409 with resume_required, and nothing is resumed', async () => {
    const address = await url();
    await ground.post(`/computers/${id}/suspend`);
    const refused = await ClientSocket.attempt(address);
    assert.ok(!(refused instanceof ClientSocket));
    assert.deepEqual(
      [refused.status, refused.body['reason'], refused.body['resume_required']],
      [409, 'unavailable', true],
    );
    assert.equal(await ground.status(id), 'suspended');
  });
}
