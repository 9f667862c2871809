// The live desktop of a real computer, through its public addresses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { greet, messages } from '../support/rfb.ts';
import { TestSocket } from '../support/socket.ts';
import { until } from '../support/until.ts';
import type { ComputerGround } from './ground.ts';

interface Addresses {
  readonly url: string;
  readonly view_url: string;
}

export function screens(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;
  before(async () => {
    ground = theGround();
    id = await ground.desktop();
  });

  const addresses = async (as = ground.as): Promise<Addresses> =>
    (await as.get(`/computers/${id}`)).body.vnc;
  const seen = (command: string) => ground.run(id, command, { session: 'desktop' });
  const pointer = async () => /x:(\d+) y:(\d+)/.exec(await seen('xdotool getmouselocation'))?.[0];

  /** One whole picture, in raw pixels. */
  async function picture(socket: TestSocket, width: number, height: number): Promise<Buffer> {
    socket.raw.send(messages.pixelFormat());
    socket.raw.send(messages.encodings(0));
    socket.raw.send(messages.updateRequest(false, width, height));
    const image = Buffer.alloc(4 * width * height);
    for (let missing = width * height; missing > 0;) {
      const count = (await socket.take(4)).readUInt16BE(2);
      for (let n = 0; n < count; n += 1) {
        const head = await socket.take(12);
        const [x, y, w, h] = [0, 2, 4, 6].map((at) => head.readUInt16BE(at)) as [
          number,
          number,
          number,
          number,
        ];
        assert.equal(head.readInt32BE(8), 0, 'raw');
        const pixels = await socket.take(4 * w * h);
        for (let row = 0; row < h; row += 1) {
          pixels.copy(image, 4 * ((y + row) * width + x), 4 * w * row, 4 * w * (row + 1));
        }
        missing -= w * h;
      }
    }
    return image;
  }

  test('wire-guest 10: a viewer greets the desktop and gets its picture, and several see the same', async () => {
    const { url, view_url: watch } = await addresses();
    const sockets = [await TestSocket.open(url), await TestSocket.open(watch)];
    const pictures = [];
    for (const socket of sockets) {
      const { width, height } = await greet(socket);
      assert.deepEqual([width, height], [1280, 800]);
      pictures.push(await picture(socket, width, height));
    }
    const [one, other] = pictures as [Buffer, Buffer];
    const colours = new Set<number>();
    let differing = 0;
    for (let at = 0; at < one.length; at += 4) {
      colours.add(one.readUInt32LE(at) & 0xffffff);
      if (one.compare(other, at, at + 3, at, at + 3) !== 0) differing += 1;
    }
    assert.ok(colours.size > 100, `${colours.size} colours are no wallpaper`);
    // The clock may have moved on.
    assert.ok(differing < 10_000, `${differing} pixels differ`);
    for (const socket of sockets) socket.close();
  });

  test('wire-guest 10: whoever controls moves, types and copies; a watcher does none of it', async () => {
    const { url, view_url: watch } = await addresses();
    const control = await TestSocket.open(url);
    await greet(control);
    control.raw.send(messages.pointer(0, 321, 123));
    await until('the pointer moved', async () => (await pointer()) === 'x:321 y:123');
    await seen('xclip -selection clipboard -i </dev/null; true');
    control.raw.send(messages.cutText('from the viewer'));
    const clip = () => seen('timeout 2 xclip -selection clipboard -o || true');
    await until('the clipboard has it', async () => (await clip()) === 'from the viewer');

    const watcher = await TestSocket.open(watch);
    await greet(watcher);
    watcher.raw.send(messages.pointer(1, 600, 400));
    watcher.raw.send(messages.pointer(0, 600, 400));
    watcher.raw.send(messages.key(true, 0x61));
    watcher.raw.send(messages.key(false, 0x61));
    watcher.raw.send(messages.cutText('from the watcher'));
    // The picture is asked for behind all of that: once it comes, the rest has been dealt with.
    await picture(watcher, 1280, 800);
    assert.equal(await pointer(), 'x:321 y:123');
    const held = await until('the clipboard is read', async () => (await clip()) || undefined);
    assert.equal(held, 'from the viewer');

    // What is copied on the desktop reaches whoever controls, and no watcher.
    await seen("printf 'a secret' | xclip -selection clipboard -i");
    await until('it is told', () => control.bytes.includes('a secret'));
    watcher.raw.send(messages.updateRequest(false, 1280, 800));
    await watcher.take(4 * 1280 * 800);
    assert.ok(!watcher.bytes.includes('a secret'));
    for (const socket of [control, watcher]) socket.close();
  });

  test('Part 5 8: revoking the key that an address was given to cuts it, and no other', async () => {
    const made = await ground.as.post('/api-keys', { name: 'for a while' });
    assert.ok(made.status < 300, made.text);
    const as = ground.service.as(made.body.raw);
    const own = await addresses(as);
    const sockets = [await TestSocket.open(own.url), await TestSocket.open(own.view_url)];
    const mine = await TestSocket.open((await addresses()).url);
    await greet(mine);
    await ground.as.delete(`/api-keys/${made.body.id}`);
    for (const socket of sockets) assert.equal((await socket.closing()).code, 4403);
    assert.equal((await TestSocket.refused(own.view_url)).status, 404);
    assert.equal(mine.closed, undefined);
    mine.close();
    // Sockets are logged, and what opens them is not.
    assert.match(ground.service.stderr, /socket screen/);
    for (const url of [own.url, own.view_url]) {
      assert.ok(!ground.service.stderr.includes(url.split('token=')[1] as string));
    }
  });

  test('wire-guest 10: viewers that go away before they have greeted shut nobody out', async () => {
    const { url } = await addresses();
    for (let n = 0; n < 12; n += 1) (await TestSocket.open(url)).close();
    const socket = await TestSocket.open(url);
    await greet(socket);
    socket.close();
  });

  test('wire-guest 10: a viewer that stops reading grows neither server nor host', async () => {
    const socket = await TestSocket.open((await addresses()).url);
    const { width, height } = await greet(socket);
    socket.raw.send(messages.encodings(0));
    socket.raw.pause();
    const pids = [await ground.pid('server'), await ground.pid('host')];
    const held = pids.map(residentMiB);
    // 400 MB of pictures that nobody reads.
    for (let n = 0; n < 100; n += 1) {
      socket.raw.send(messages.updateRequest(false, width, height));
    }
    await seen(
      'for n in 1 2 3; do xsetroot -solid red; sleep 0.3; xsetroot -solid blue; sleep 0.3; done',
    );
    pids.forEach((pid, i) => {
      const grown = residentMiB(pid) - (held[i] as number);
      assert.ok(grown < 60, `${grown} MiB more`);
    });
    socket.close();
  });

  test('wire-guest 10, Part 7 Conflicts 3: suspended, stopped and started again: the address stays', async () => {
    const { url } = await addresses();
    const socket = await TestSocket.open(url);
    await greet(socket);
    await ground.post(`/computers/${id}/suspend`);
    assert.equal((await socket.closing()).code, 4409);
    const refused = await TestSocket.refused(url);
    assert.deepEqual([refused.status, refused.body.resume_required], [409, true]);
    await ground.post(`/computers/${id}/start`);
    const again = await until('it opens', async () => {
      const one = await TestSocket.tryOpen(url);
      return one instanceof TestSocket && one;
    });
    await greet(again);
    again.close();
  });

  test('wire-guest 10: a restart replaces the address, and a restart of the service does not', async () => {
    const old = await addresses();
    const socket = await TestSocket.open(old.url);
    await ground.post(`/computers/${id}/restart`);
    assert.equal((await socket.closing()).code, 4401);
    assert.equal((await TestSocket.refused(old.url)).status, 404);
    await ground.desktopReady(id);
    const fresh = await TestSocket.open((await addresses()).url);
    await greet(fresh);
    await ground.service.stop();
    assert.equal((await fresh.closing()).code, 1001);
    await ground.start();
    await ground.desktopReady(id);
    const next = await TestSocket.open((await addresses()).view_url);
    await greet(next);
    await ground.as.delete(`/computers/${id}`);
    assert.equal((await next.closing()).code, 4404);
  });
}

function residentMiB(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}
