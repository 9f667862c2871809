// The event socket of a real computer: real windows, clipboard owners, files and processes.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';
import { ClientSocket, type Frame, type Refused, SuiteSockets } from './socket.ts';

export function events(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  const sockets = new SuiteSockets();
  before(async () => {
    ground = theGround();
    id = await ground.desktop({ size: 'medium' });
  });

  const url = async () => (await ground.as.get(`/computers/${id}`)).body.events_url as string;
  const listen = async (query = '') => sockets.open((await url()) + query);
  const refused = async (address: string) => {
    const answer = await ClientSocket.attempt(address);
    assert.ok(!(answer instanceof ClientSocket), 'it was opened');
    return answer;
  };
  const of = (type: string) => (frame: Frame) => frame.type === type;

  test('Part 6.2: hello tells what can be heard, where it stands, and which windows there are', async () => {
    const socket = await listen();
    const hello = await socket.frame('hello', of('hello'));
    assert.equal(hello.ready, true);
    assert.equal(hello.computer, id);
    assert.ok(Array.isArray(hello.windows));
    assert.equal(hello.watching, undefined);
    assert.ok(hello.events?.includes('window.opened') && hello.events.includes('file.changed'));
  });

  test('Part 6.2: windows, clipboard, processes and files are told as they change', async () => {
    const socket = await listen('&watch=/home/user/&watch=/var/tmp/./later');
    const hello = await socket.frame('hello', of('hello'));
    assert.deepEqual(
      hello.watching?.map(({ path }) => path),
      ['/home/user', '/var/tmp/later'],
    );
    await socket.frame(
      'the tree is watched',
      ({ type, data }) =>
        type === 'file.changed' && data?.['armed'] === true && data['watch'] === '/home/user',
    );
    await ground.as.post(`/computers/${id}/input`, { action: 'left_click', x: 150, y: 778 });
    const opened = await socket.frame('a window opens', of('window.opened'));
    assert.equal(opened.source, 'guest');
    await socket.frame(
      'it is focused',
      ({ type, data }) => type === 'window.focused' && data?.['id'] === opened.data?.['id'],
    );
    await ground.as.post(`/computers/${id}/windows/${String(opened.data?.['id'])}`, {
      action: 'close',
    });
    await socket.frame(
      'it closes',
      ({ type, data }) => type === 'window.closed' && data?.['id'] === opened.data?.['id'],
    );
    await ground.as.put(`/computers/${id}/clipboard`, { text: 'copied' });
    const copied = await socket.frame('the clipboard changes', of('clipboard.changed'));
    assert.deepEqual(copied.data, { selection: 'clipboard' });
    await ground.run(id, 'echo 1 > /home/user/one; mkdir /var/tmp/later');
    const made = await socket.frame(
      'a file appears',
      ({ type, data }) => type === 'file.changed' && data?.['path'] === '/home/user/one',
    );
    assert.deepEqual(made.data, {
      watch: '/home/user',
      path: '/home/user/one',
      kind: 'created',
    });
    await socket.frame(
      'the directory that came later is watched',
      ({ type, data }) =>
        type === 'file.changed' && data?.['armed'] === true && data['watch'] === '/var/tmp/later',
    );
    const wish = { command: 'exit 5', background: true };
    const { body } = await ground.as.send('POST', `/computers/${id}/exec`, { json: wish });
    const exited = await socket.frame('the command exits', of('process.exited'));
    assert.deepEqual(exited.data, {
      execution_id: body.execution_id,
      pid: body.pid,
      exit_code: 5,
    });
    const seqs = socket.frames
      .filter(({ seq }) => seq !== undefined)
      .map(({ seq }) => seq as number);
    assert.deepEqual(
      seqs,
      seqs.toSorted((a, b) => a - b),
    );
  });

  test('Part 6.2: whoever comes back with a cursor hears what was missed, once', async () => {
    const first = await listen();
    const { cursor = '' } = await first.frame('hello', of('hello'));
    await first.close();
    await ground.as.put(`/computers/${id}/clipboard`, { text: 'meanwhile' });
    const second = await listen(`&since=${cursor}`);
    const hello = await second.frame('hello', of('hello'));
    assert.equal(hello.windows, undefined, 'an honoured cursor needs no picture');
    await second.frame('what was missed', of('clipboard.changed'));
  });

  test('Part 6.2, Part 8 Sizes: more streams, trees or paths than may be are refused', async () => {
    const address = await url();
    for (const watch of ['relative', '/', '/..', `/${'x'.repeat(256)}`]) {
      const { status } = await refused(`${address}&watch=${encodeURIComponent(watch)}`);
      assert.equal(status, 400, watch);
    }
    const five = [1, 2, 3, 4, 5].map((n) => `&watch=/tmp/t${n}`).join('');
    assert.equal((await refused(address + five)).status, 400);
    for (let n = 0; n < 8; n += 1) await listen();
    const { status, body } = await refused(address);
    assert.deepEqual([status, body['reason']], [409, undefined]);
    assert.match(String(body['error']), /8 event streams/);
    assert.equal(typeof body['request_id'], 'string');
  });

  test('Part 5 8: a key or a watching credential opens no events', async () => {
    const { body } = await ground.as.get(`/computers/${id}`);
    const [plain = ''] = body.events_url.split('?');
    const { view_token: watching } = body.vnc;
    assert.equal((await refused(`${plain}?token=${watching}`)).status >= 400, true);
    const answer = await ground.as.get(`/computers/${id}/events`);
    assert.equal(answer.status, 400);
    assert.match(answer.body.error, /events_url/);
    const unknown = await ground.as.get('/computers/vm-000000000000/events');
    assert.deepEqual([unknown.status, unknown.body.error], [400, answer.body.error]);
  });

  test('Part 6.2: a stream outlives a suspend and a stop of its computer, and tells them', async () => {
    const socket = await listen();
    await ground.post(`/computers/${id}/suspend`);
    const suspended = await socket.frame('it is suspended', of('computer.suspended'));
    assert.deepEqual(suspended.data, { status: 'suspended', previous: 'running' });
    const record = (await ground.as.get(`/computers/${id}`)).body;
    assert.equal(record.events_url, undefined);
    await ground.post(`/computers/${id}/start`);
    await socket.frame('it is resumed', of('computer.started'));
    await ground.post(`/computers/${id}/stop`);
    await socket.frame('it is stopped', of('computer.stopped'));
    await ground.post(`/computers/${id}/start`);
    await until(
      'the desktop is told ready again',
      () => socket.frames.filter(of('computer.ready')).length > 0,
    );
    assert.equal(socket.closed, undefined);
  });

  test('Part 6.2: a suspended computer is 409 with resume_required', async () => {
    const address = await url();
    await ground.post(`/computers/${id}/suspend`);
    const { status, body }: Refused = await refused(address);
    assert.deepEqual([status, body['reason'], body['resume_required']], [409, 'unavailable', true]);
    await ground.post(`/computers/${id}/start`);
  });

  test('Part 6.2: a cursor from before a restart of the daemon is a gap', async () => {
    const socket = await listen();
    const { cursor = '' } = await socket.frame('hello', of('hello'));
    await ground.kill('host');
    assert.ok((await socket.ended()) > 0);
    const again = await sockets.reopen(async () => `${await url()}&since=${cursor}`);
    const gap = await again.frame('the gap', of('gap'));
    assert.equal(gap.seq, undefined);
    assert.equal(typeof gap.data?.['detail'], 'string');
  });

  test('wire-computers 2: a restart of the computer cuts off the old address', async () => {
    await until('the agent is back', async () => (await ground.told(id))?.ready);
    const address = await url();
    const socket = await listen();
    await ground.post(`/computers/${id}/restart`);
    assert.ok((await socket.ended()) >= 4_000);
    assert.equal((await refused(address)).status, 404);
  });
}
