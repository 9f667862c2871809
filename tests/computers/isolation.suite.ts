// What somebody with root in one computer reaches of the host, of the service and of other computers, seen
// through the public API. The engine's own part is in tests/host.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { assertRefused } from '../support/assertions.ts';
import { until } from '../support/until.ts';
import { type ComputerGround, fileOf } from './ground.ts';

const run = promisify(execFile);

export function isolation(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let mine: string;
  let other: string;

  before(async () => {
    ground = theGround();
    [mine = '', other = ''] = await Promise.all([ground.desktop(), ground.desktop()]);
  });

  const address = (id: string) =>
    until('it has an address', async () => {
      const shown = await ground.run(id, 'ip -4 -brief address show dev eth0');
      return /(\d[\d.]+)\//.exec(shown)?.[1];
    });
  /** Which of these answer to a connection? All are tried at once, as each refusal is a silence. */
  const reached = async (places: readonly string[]) => {
    const tries = places.map((place) => {
      const [host, port] = place.split(':');
      return `(timeout 2 bash -c 'exec 3<>/dev/tcp/${host}/${port}' 2>/dev/null && echo ${place}) &`;
    });
    const shown = await ground.run(mine, `${tries.join('\n')}\nwait`);
    return shown.split('\n').filter((line) => line !== '');
  };

  test('neither the control plane nor another computer is reached', async () => {
    const [here, there] = [await address(mine), await address(other)];
    const serve = (id: string) =>
      ground.as.post(`/computers/${id}/exec`, {
        command: 'exec python3 -m http.server 8099',
        background: true,
      });
    for (const id of [mine, other]) assert.equal((await serve(id)).status, 202);
    await until('somebody serves', async () => (await reached([`${here}:8099`])).length === 1);
    const { port } = new URL(ground.service.baseUrl);
    const hosts = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family }) => family === 'IPv4')
      .map((each) => each.address);
    assert.ok(hosts.length > 1, 'the loopback’s and the bridge’s at least');
    const places = hosts.map((host) => `${host}:${port}`);
    assert.deepEqual(await reached([...places, `${there}:8099`]), []);
  });

  test('what the host gives a guest cannot be changed by it', async () => {
    for (const folder of ['/opt/cubicle/agent', '/opt/cubicle/link']) {
      for (const deed of [
        `touch ${folder}/x`,
        `rm -r ${folder}`,
        `mount -o remount,rw ${folder} && touch ${folder}/x`,
        `mount -o remount,bind,rw ${folder} && touch ${folder}/x`,
        `for f in ${folder}/*; do chmod 777 $f && exit 0; done; exit 1`,
        `for f in ${folder}/*.*; do test -f $f && echo >> $f && exit 0; done; exit 1`,
      ]) {
        assert.notEqual((await ground.exec(mine, deed)).code, 0, deed);
      }
    }
    const instance = await ground.instanceOf(mine);
    const files = ['agent.sock', 'computer.json'];
    for (const name of files)
      assert.ok(existsSync(join(ground.dataDir, 'host/links', instance, name)));
    assert.equal(await ground.run(mine, 'ls /opt/cubicle/link'), files.join('\n'));
  });

  test('no credential of the service is in a guest’s environment, arguments or files', async () => {
    const folder = ground.dataDir;
    const token = readFileSync(join(folder, 'host/token'), 'utf8').trim();
    const secrets = [ground.service.firstKey().key, token, folder, 'DATABASE_URL'];
    const shown = await ground.run(
      mine,
      'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\\0" " "',
    );
    for (const secret of secrets) assert.ok(!shown.includes(secret), secret);
    const { alias, pool } = ground.place;
    const disk = join(alias, 'storage-pools', pool, 'containers', await ground.instanceOf(mine));
    // What the guest has on its disk, except for what came with the image's packages.
    const places = ['etc', 'root', 'home', 'var', 'opt', 'srv', 'tmp'].map((name) =>
      join(disk, 'rootfs', name),
    );
    const args = secrets.slice(0, 3).flatMap((secret) => ['-e', secret]);
    const found = await run('grep', ['-rlF', ...args, ...places]).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    );
    assert.equal(found.stdout, '');
    const shared = await ground.run(
      mine,
      'cat /opt/cubicle/link/computer.json; ls -R /run || true',
    );
    for (const secret of secrets) assert.ok(!shared.includes(secret), secret);
  });

  test('no two computers share a user of the host, and none has the host’s own', async () => {
    const ranges = await Promise.all(
      [mine, other].map(async (id) => {
        const map = await ground.run(id, 'cat /proc/self/uid_map');
        const [inside = 0, first = 0, many = 0] = map.trim().split(/\s+/).map(Number);
        assert.deepEqual([inside, map.split('\n').length], [0, 1]);
        return { first, end: first + many };
      }),
    );
    const [low, high] = ranges.toSorted((a, b) => a.first - b.first);
    assert.ok(low && high && low.first > 65_535 && low.end <= high.first, JSON.stringify(ranges));
  });

  test('a computer that wants more than its share hurts itself only', async () => {
    const session = await ground.session(mine);
    const hog = await ground.exec(mine, 'head -c 3G /dev/zero | tail -c 3G | wc -c');
    assert.notEqual(hog.out.trim(), `${3 * 2 ** 30}`, 'it has 1 GiB');
    assert.equal(await ground.run(other, 'echo well'), 'well');
    assert.equal(await ground.session(mine), session, 'it lives on');
  });

  test('wire-guest 9: no link and no path leads the files API out of its guest', async () => {
    const secret = join(ground.dataDir, 'first-key.json');
    assert.ok(existsSync(secret));
    await ground.run(
      mine,
      `ln -s ${secret} /root/file; ln -s ${ground.dataDir} /root/folder; ln -s /etc /root/etc; ln -s /proc/1/root /root/top`,
    );
    const outside = ['/root/file', '/root/folder/first-key.json', secret, `/../../../..${secret}`];
    for (const path of [...outside, `/root/top${secret}`, `/proc/1/root${secret}`]) {
      const answer = await ground.read(mine, path);
      assert.equal(answer.status, 404, `${path}: ${await answer.text()}`);
    }
    const hostname = await ground.read(mine, '/root/etc/hostname');
    assert.equal((await hostname.text()).trim(), mine, 'a link inside leads inside');
    const list = (path: string) =>
      ground.as.get(`/computers/${mine}/files/list?path=${encodeURIComponent(path)}`);
    assert.ok((await list('/root/folder')).status >= 400);
    assertRefused(await list(ground.dataDir), 404);
    await ground.run(mine, `ln -s ${ground.dataDir}/planted /root/plant`);
    await ground.write(mine, '/root/plant', Buffer.from('x'));
    await ground.write(mine, `/root/top${ground.dataDir}/planted`, Buffer.from('x'));
    assert.equal(existsSync(join(ground.dataDir, 'planted')), false);
    assert.equal((await ground.as.get(fileOf(other, '/root/plant'))).status, 404);
  });
}
