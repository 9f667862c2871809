/** Proves that the Incus engine does what every engine does, and that its guests are held in. */
import assert from 'node:assert/strict';
import { existsSync, realpathSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import type { InstanceSpec, Mount } from '../../packages/host/engine/engine.ts';
import { until } from '../support/until.ts';
import { engineSuite, live, newId, specOf } from './engine-suite.ts';
import { IncusGround } from './incus-ground.ts';

const ability = await canRunEngine();
if (!ability.can) test('the Incus engine', { skip: ability.reason });
else {
  engineSuite('the Incus engine', () => IncusGround.open(), guests);
}

/** What only real guests can show. */
function guests(groundOf: () => IncusGround): void {
  let ground: IncusGround;
  let folder: string;
  before(async () => {
    ground = groundOf();
    folder = await mkdtemp(join(tmpdir(), 'cubicle-mounts-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const running = async (more: Partial<InstanceSpec> = {}): Promise<string> => {
    const id = newId();
    await ground.engine.create(live, specOf(id, more), ground.digest);
    await ground.engine.start(live, id);
    return id;
  };

  test('memory beyond the limit is refused by a kill, and the guest lives on', async () => {
    const id = await running({ shape: { cpu: 1, ramMb: 64, diskGb: 1 } });
    const session = await ground.session(id);
    // tail keeps a whole line in memory.
    const { code } = await ground.exec(id, 'head -c 200000000 /dev/zero | tail -n 1 > /dev/null');
    assert.equal(code, 137);
    assert.equal(await ground.session(id), session);
    await ground.engine.delete(live, id);
  });

  test('a disk takes what its size says and no more, until it grows', async () => {
    const id = await running();
    const fill = (megabytes: number) => ground.exec(id, `fallocate -l ${megabytes}M /root/big`);
    assert.notEqual((await fill(1_200)).code, 0);
    await ground.exec(id, 'rm -f /root/big; sync');
    await ground.engine.change(live, id, { shape: { cpu: 1, ramMb: 128, diskGb: 3 } });
    const grown = await fill(1_200);
    assert.equal(grown.code, 0, grown.output);
    await ground.engine.delete(live, id);
  });

  test('a guest runs as many processes as its limit and no more', async () => {
    const id = await running({ shape: { cpu: 2, ramMb: 2_048, diskGb: 1 } });
    const bomb = 'i=0; while [ $i -lt 4200 ]; do sleep 300 & i=$((i+1)); done; echo all';
    const { code, output } = await ground.exec(id, bomb);
    assert.ok(code !== 0 && /fork/.test(output), output.slice(0, 200));
    await ground.engine.delete(live, id);
  });

  test('no two guests share a uid on the host', async () => {
    const ids = await Promise.all([running(), running(), running()]);
    const maps = await Promise.all(ids.map((id) => ground.exec(id, 'cat /proc/self/uid_map')));
    const starts = maps.map(({ output }) => Number(output.trim().split(/\s+/)[1]));
    assert.ok(
      starts.every((start) => start >= 65_536),
      starts.join(' '),
    );
    const sorted = starts.toSorted((a, b) => a - b);
    assert.ok(sorted.every((start, at) => at === 0 || start - (sorted[at - 1] ?? 0) >= 65_536));
    for (const id of ids) await ground.engine.delete(live, id);
  });

  test('a guest may make namespaces of its own, and reads nothing of its labels', async () => {
    const id = await running();
    const { code, output } = await ground.exec(id, 'unshare -U -r -n -p -f id -u');
    assert.deepEqual({ code, output }, { code: 0, output: '0\n' });
    assert.notEqual((await ground.exec(id, 'ls /dev/incus')).code, 0);
    await ground.engine.delete(live, id);
  });

  test('folders of the host are seen as they are meant', async () => {
    const [agent, link] = [join(folder, 'agent'), join(folder, 'link')];
    await mkdir(agent);
    await mkdir(link);
    await chmod(link, 0o777);
    await writeFile(join(agent, 'text'), 'from the host');
    const mounts: Mount[] = [
      { name: 'agent', hostPath: agent, guestPath: '/opt/agent', readOnly: true },
      { name: 'link', hostPath: link, guestPath: '/opt/link', readOnly: false },
      { name: 'door', hostPath: link, guestPath: '/opt/door', readOnly: true },
      // What the host's Node needs to run in the guest, which has nothing but busybox.
      ...[dirname(process.execPath), '/lib', '/lib64']
        .filter((path) => existsSync(path))
        .map((path, at) => ({
          name: `node${at}`,
          hostPath: realpathSync(path),
          guestPath: path,
          readOnly: true,
        })),
    ];
    const said = Promise.withResolvers<string>();
    const server = createServer((socket) => {
      socket.on('data', (data) => {
        said.resolve(data.toString());
        socket.end('heard');
      });
    });
    const bound = Promise.withResolvers<void>();
    server.listen({ path: join(link, 'agent.sock'), writableAll: true }, bound.resolve);
    await bound.promise;
    try {
      const id = await running({ mounts });
      assert.equal(await ground.read(id, '/opt/agent/text'), 'from the host');
      assert.notEqual((await ground.exec(id, 'touch /opt/agent/mine')).code, 0);
      assert.equal((await ground.exec(id, 'echo mine > /opt/link/mine')).code, 0);
      // A socket can be connected to through a mount that is read-only.
      const connect = `net.connect("/opt/door/agent.sock").end("hello").pipe(process.stdout)`;
      const talk = await ground.exec(id, `${process.execPath} -e '${connect}'`);
      assert.deepEqual(talk, { code: 0, output: 'heard' });
      assert.equal(await said.promise, 'hello');
      await ground.engine.delete(live, id);
    } finally {
      server.close();
    }
  });

  test('a guest that shuts itself down is stopped and starts again', async () => {
    const id = await running();
    // Its first process hears nothing before it has begun to listen.
    await until('it is stopped', async () => {
      await ground.exec(id, 'kill -PWR 1');
      return (await ground.engine.get(live, id))?.status === 'stopped';
    });
    await ground.engine.start(live, id);
    await ground.session(id);
    await ground.engine.delete(live, id);
  });

  test('a guest that will not shut down is stopped by force', async () => {
    const id = await running();
    await ground.exec(id, 'kill -STOP -1');
    await ground.engine.stop(live, id, true);
    assert.equal((await ground.engine.get(live, id))?.status, 'stopped');
    await ground.engine.delete(live, id);
  });

  test('a guest that died while Incus was away starts again under its old interface name', async () => {
    const id = await running();
    process.kill(ground.daemon.pid, 'SIGKILL');
    await ground.exec(id, 'kill -PWR 1').catch(() => {});
    await until('it is stopped', async () => {
      await ground.engine.stop(live, id, true);
      return true;
    });
    await ground.engine.start(live, id);
    await ground.session(id);
    await ground.engine.delete(live, id);
  });

  test('an Incus killed in the middle of making an instance finishes it', async () => {
    const id = newId();
    const making = ground.engine.create(live, specOf(id), ground.digest);
    process.kill(ground.daemon.pid, 'SIGKILL');
    await making;
    assert.equal((await ground.engine.get(live, id))?.status, 'stopped');
    const copy = newId();
    const copying = ground.engine.copy(live, specOf(copy), id);
    process.kill(ground.daemon.pid, 'SIGKILL');
    await copying;
    await ground.engine.start(live, copy);
    for (const one of [id, copy]) await ground.engine.delete(live, one);
  });
}
