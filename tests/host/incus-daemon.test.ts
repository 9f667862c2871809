/** Proves who owns the Incus of a data folder, that it comes back from every end, and that it goes without a trace. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import test, { type TestContext } from 'node:test';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import { readEndpoint } from '../../packages/host/engine/incus/endpoint.ts';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { trimLog } from '../../packages/host/engine/incus/log-file.ts';
import { type OpenedIncus, openIncus } from '../../packages/host/engine/incus/open.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { endNameServers, findDaemon } from '../../packages/host/engine/incus/processes.ts';
import { erase } from '../../packages/host/engine/incus/sweep.ts';
import { signal } from '../support/process.ts';
import { until } from '../support/until.ts';
import { live, newId, specOf } from './engine-suite.ts';
import { execIn } from './guest-shell.ts';
import { endWithTheProcess, removeGround } from './incus-ground.ts';
import { assertNoTrace, traces } from './machine.ts';
import { tinyImage } from './tiny-image.ts';

const run = promisify(execFile);

const ability = await canRunEngine();
const options = ability.can ? {} : { skip: ability.reason };

/** A data folder whose Incus ends with the test, whatever state the test leaves it in. */
class Home {
  readonly dataDir: string;
  readonly place: Place;
  readonly #opened = new Set<OpenedIncus>();
  readonly #holders: ChildProcess[] = [];

  private constructor(dataDir: string, place: Place) {
    this.dataDir = dataDir;
    this.place = place;
  }

  static async make(t: TestContext, below = ''): Promise<Home> {
    const top = await mkdtemp(join(tmpdir(), 'cubicle-incus-'));
    const dataDir = join(top, below);
    const home = new Home(dataDir, await placeOf(dataDir));
    endWithTheProcess(home.place, top, () => home.#clear());
    t.after(async () => {
      await home.#clear();
      await removeGround(top, home.place);
    });
    return home;
  }

  async #clear(): Promise<void> {
    for (const holder of this.#holders) holder.kill('SIGKILL');
    for (const opened of this.#opened) await opened.purge();
    await erase(this.place);
  }

  async open(waitMs = 10_000): Promise<OpenedIncus> {
    const { dataDir } = this;
    const opened = await openIncus(live, { dataDir, say: () => {}, largestPoolGib: 10, waitMs });
    this.#opened.add(opened);
    return opened;
  }

  async stop(opened: OpenedIncus, keepComputers: boolean): Promise<void> {
    await opened.stop({ keepComputers });
    this.#opened.delete(opened);
  }

  /** Another process that owns it, with a running guest of that id. */
  hold(id: string): { process: ChildProcess; pid: Promise<number> } {
    const script = join(import.meta.dirname, 'hold-incus.ts');
    const child = spawn(process.execPath, [script, this.dataDir, id], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#holders.push(child);
    const pid = new Promise<number>((resolve) => {
      createInterface(child.stdout).once('line', (line) => resolve(Number(line)));
    });
    return { process: child, pid };
  }

  async running(opened: OpenedIncus, id = newId()): Promise<string> {
    const { digest, files } = await tinyImage();
    await opened.engine.importImage(live, digest, files);
    await opened.engine.create(live, specOf(id), digest);
    await opened.engine.start(live, id);
    return id;
  }

  /** Tells one boot of a guest from another. */
  async boot(id: string): Promise<string> {
    const { code, output } = await execIn(this.place, id, `cut -d ' ' -f 22 /proc/1/stat`);
    assert.equal(code, 0, output);
    return output;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  if (child.kill('SIGKILL')) await exited;
}

test('the Incus of a host killed with -9 is adopted with its guests', options, async (t) => {
  const home = await Home.make(t);
  const id = newId();
  const holder = home.hold(id);
  const pid = await holder.pid;
  await assert.rejects(home.open(0), {
    message: `Another Cubicle host is using the data folder of ${home.place.folder}; give this one its own CUBICLE_DATA.`,
  });
  const boot = await home.boot(id);
  await kill(holder.process);
  const opened = await home.open();
  assert.equal(opened.daemon?.pid, pid);
  assert.equal((await opened.engine.get(live, id))?.status, 'running');
  assert.equal(await home.boot(id), boot);
  // Adopted, it is looked after like one of our own.
  process.kill(pid, 'SIGKILL');
  await until('another daemon is there', () => opened.daemon?.pid !== pid);
  assert.equal((await opened.engine.get(live, id))?.status, 'running');
  assert.equal(await home.boot(id), boot);
});

test('a stop keeps the computers, or ends them and everything of them', options, async (t) => {
  const home = await Home.make(t, 'a/folder/whose/path/is/too/long/for/a/socket'.repeat(3));
  const first = await home.open();
  const id = await home.running(first);
  const boot = await home.boot(id);
  await execIn(home.place, id, 'echo kept > /root/text');
  await home.stop(first, true);
  assert.equal(await findDaemon(home.place), undefined);
  const second = await home.open();
  assert.equal(await home.boot(id), boot);
  await second.engine.freeze(live, id);
  await home.stop(second, false);
  await assertNoTrace(home.place, [id]);
  await access(home.place.folder);
  const third = await home.open();
  assert.equal((await third.engine.get(live, id))?.status, 'stopped');
  await third.engine.start(live, id);
  assert.equal((await execIn(home.place, id, 'cat /root/text')).output, 'kept\n');
});

test('a bridge that could not be brought up is tried again', options, async (t) => {
  const home = await Home.make(t);
  const first = await home.open();
  const id = await home.running(first);
  const boot = await home.boot(id);
  await home.stop(first, true);
  // Somebody else's name server takes the place of the bridge's own, which Incus then cannot start.
  await endNameServers(home.place);
  const address = networkInterfaces()[home.place.bridge]?.[0]?.address;
  assert.ok(address);
  const squatter = createServer();
  await until('the squatter is in', async () => {
    squatter.listen(53, address);
    await once(squatter, 'listening');
    return true;
  });
  const opening = home.open();
  await until('Incus has failed', async () =>
    (await readFile(home.place.log, 'utf8')).includes('Failed initializing network'),
  );
  squatter.close();
  const second = await opening;
  assert.equal(await home.boot(id), boot);
  await home.running(second);
});

test('a purge of running and frozen computers leaves nothing', options, async (t) => {
  const home = await Home.make(t);
  const opened = await home.open();
  const ids = [await home.running(opened), await home.running(opened)] as const;
  await opened.engine.freeze(live, ids[1]);
  assert.notDeepEqual(await traces(home.place, ids), []);
  await opened.purge();
  await assertNoTrace(home.place, ids);
  await assert.rejects(access(home.place.folder));
  await assert.rejects(access(home.place.log));
});

test('what a deleted data folder leaves behind is cleared by the next', options, async (t) => {
  const home = await Home.make(t);
  const id = newId();
  const holder = home.hold(id);
  const pid = await holder.pid;
  await kill(holder.process);
  process.kill(pid, 'SIGKILL');
  // It goes as far as it can: mount points stay.
  await run('rm', ['-rf', home.dataDir]).catch(() => {});
  const opened = await home.open();
  assert.deepEqual(await opened.engine.list(live), []);
  const nowhere = { folder: id, alias: id, bridge: id, links: id, table: id };
  await assertNoTrace({ ...home.place, ...nowhere });
  await home.running(opened);
});

test('a first start killed at any point is completed by the next', options, async (t) => {
  const home = await Home.make(t);
  const { folder, bridge } = home.place;
  // In the order of their making: each start gets a step further than the one before.
  const steps = ['database', 'unix.socket', 'disks/cubicle.img'].map((name) => join(folder, name));
  for (const step of [...steps, `/sys/class/net/${bridge}`]) {
    const holder = home.hold(newId());
    await until(`${step} is there`, () =>
      access(step).then(
        () => true,
        () => false,
      ),
    );
    await kill(holder.process);
    const pid = await findDaemon(home.place);
    if (pid !== undefined) signal(pid, 'SIGKILL');
  }
  const opened = await home.open();
  await home.boot(await home.running(opened));
});

test(
  'what a pool left that was never noted makes way, and disks in it do not',
  options,
  async (t) => {
    const home = await Home.make(t);
    const kind = join(home.place.folder, 'storage-pools', home.place.pool, 'containers');
    const disk = join(kind, 'somebody');
    await mkdir(disk, { recursive: true });
    await assert.rejects(home.open(), /has disks that Incus does not know of/);
    await access(disk);
    await rmdir(disk);
    const opened = await home.open();
    await home.boot(await home.running(opened));
  },
);

test(
  'an existing Incus is spoken to by TLS, and only if it is the one named',
  options,
  async (t) => {
    const home = await Home.make(t);
    const opened = await home.open();
    const id = await home.running(opened);
    const port = await freePort();
    const client = new IncusClient({ kind: 'unix', path: home.place.socket });
    // The daemon's own certificate serves as the caller's, too.
    const certificate = join(home.place.folder, 'server.crt');
    const der = (await readFile(certificate, 'utf8')).replaceAll(/-----[^-]+-----|\s/g, '');
    await client.change(live, 'POST', '/1.0/certificates', { type: 'client', certificate: der });
    await client.change(live, 'PATCH', '/1.0', {
      config: { 'core.https_address': `127.0.0.1:${port}` },
    });
    client.close();
    const endpoint = readEndpoint({
      CUBICLE_INCUS: `https://127.0.0.1:${port}`,
      CUBICLE_INCUS_CERT: certificate,
      CUBICLE_INCUS_KEY: join(home.place.folder, 'server.key'),
      CUBICLE_INCUS_SERVER_CERT: certificate,
    });
    const foreign = await openIncus(live, { dataDir: home.dataDir, say: () => {}, endpoint });
    assert.equal(foreign.daemon, undefined);
    assert.equal((await foreign.engine.get(live, id))?.status, 'running');
    await foreign.engine.stop(live, id, true);
    await foreign.stop({ keepComputers: false });
    assert.equal((await opened.engine.get(live, id))?.status, 'stopped', 'it is not ours to end');

    assert.ok(endpoint?.kind === 'https');
    const [pinned = ''] = rootCertificates;
    const other = new IncusClient({ ...endpoint, tls: { ...endpoint.tls, ca: pinned } });
    await assert.rejects(other.get(live, '/1.0'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    other.close();
  },
);

test('CUBICLE_INCUS is read, and what is wrong with it said', () => {
  assert.equal(readEndpoint({}), undefined);
  assert.equal(readEndpoint({ CUBICLE_INCUS: ' ' }), undefined);
  assert.deepEqual(readEndpoint({ CUBICLE_INCUS: 'unix:/run/incus/unix.socket' }), {
    kind: 'unix',
    path: '/run/incus/unix.socket',
  });
  assert.throws(() => readEndpoint({ CUBICLE_INCUS: 'http://somewhere' }), {
    message:
      'CUBICLE_INCUS must be unix:/path/of/the/socket or https://address:port, not "http://somewhere".',
  });
  assert.throws(() => readEndpoint({ CUBICLE_INCUS: 'https://somewhere:8443' }), {
    message: 'CUBICLE_INCUS is an https address, so CUBICLE_INCUS_CERT must name a PEM file.',
  });
});

test('a log is cut when it has grown, and its writer goes on', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-log-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'incus.log');
  await writeFile(file, 'x'.repeat(1024));
  await trimLog(file);
  assert.equal((await stat(file)).size, 1024);
  await writeFile(file, 'x'.repeat(11 * 1024 * 1024));
  await trimLog(file);
  assert.equal((await stat(file)).size, 0);
  assert.equal((await stat(`${file}.1`)).size, 11 * 1024 * 1024);
});
