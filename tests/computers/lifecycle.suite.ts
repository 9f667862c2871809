// A newcomer's way through the life of a real computer, in the order in which they would go it.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { assertRefused } from '../support/assertions.ts';
import { until } from '../support/until.ts';
import { type ComputerGround, digestOf, fileOf } from './ground.ts';
import { GuestGroup } from './guest-group.ts';

const MiB = 2 ** 20;

export function life(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let id: string;

  before(() => {
    ground = theGround();
  });

  const record = async (of = id) => (await ground.as.get(`/computers/${of}`)).body;
  const group = async () => new GuestGroup(ground.place, await ground.instanceOf(id));

  test('wire-computers 4, wire-guest 3: a created computer runs commands as root and shows a desktop', async () => {
    let busy = true;
    const making = ground.create({ name: 'mine', size: 'small' }).finally(() => (busy = false));
    // Whoever waits for it is told.
    making.catch(() => {});
    const seen = new Set<string>();
    while (busy) {
      for (const row of (await ground.as.get('/computers')).body) seen.add(row.status);
      await pause(50);
    }
    assert.ok(!seen.has('half-removed'), [...seen].join());
    const made = await making;
    id = made.id;
    assert.equal((await ground.ended(made.operation_id)).state, 'succeeded');
    assert.equal(await ground.run(id, 'id --user; hostname'), `0\n${id}`);
    const failed = await ground.exec(id, 'echo no >&2; exit 3');
    assert.deepEqual([failed.code, failed.err], [3, 'no\n']);
    await ground.desktopReady(id);
    const desktop = { session: 'desktop' } as const;
    assert.equal(
      await ground.run(id, 'echo $DISPLAY; xdotool getdisplaygeometry', desktop),
      ':0\n1280 800',
    );
    // It goes to the background before the display has heard of it.
    await ground.run(id, 'printf seen | xclip -in -selection clipboard', desktop);
    await until('it can be pasted', async () => {
      return (await ground.run(id, 'xclip -out -selection clipboard', desktop)) === 'seen';
    });
    assert.notEqual(await ground.run(id, 'id --user', desktop), '0');
  });

  test('a screenshot taken in the guest comes back over the files API', async () => {
    await ground.run(id, 'maim /tmp/screen.png', { session: 'desktop' });
    const image = Buffer.from(await (await ground.read(id, '/tmp/screen.png')).arrayBuffer());
    assert.equal(image.toString('latin1', 1, 4), 'PNG');
    assert.deepEqual([image.readUInt32BE(16), image.readUInt32BE(20)], [1280, 800]);
    await keepScreen('desktop.png', image);
  });

  test('wire-guest 3, wire-guest 4: a background command is polled, read and killed', async () => {
    const start = async (command: string) => {
      const wish = { command, background: true };
      const answer = await ground.as.send('POST', `/computers/${id}/exec`, { json: wish });
      assert.equal(answer.status, 202, answer.text);
      return answer.body as { pid: number; execution_id: string };
    };
    const poll = async (pid: number) => (await ground.as.get(`/computers/${id}/exec/${pid}`)).body;
    const short = await start('echo done; exit 4');
    let out = '';
    const ended = await until('it has ended', async () => {
      const polled = await poll(short.pid);
      out += Buffer.from(polled.stdout_b64, 'base64').toString();
      return polled.running ? undefined : polled;
    });
    assert.deepEqual([out, ended.exit_code], ['done\n', 4]);
    const execution = `/computers/${id}/executions/${short.execution_id}`;
    assert.equal((await ground.as.get(execution)).body.status, 'exited');
    const output = await ground.as.get(`${execution}/output?stdout_offset=0&stderr_offset=0`);
    assert.equal(Buffer.from(output.body.stdout_b64, 'base64').toString(), 'done\n');
    const long = await start('sleep 1000 & exec sleep 2000');
    assert.equal((await poll(long.pid)).running, true);
    const killed = (await ground.as.delete(`/computers/${id}/exec/${long.pid}`)).body;
    assert.deepEqual([killed.killed, killed.running], [true, false]);
    assert.equal((await ground.exec(id, 'pgrep -f "sleep [12]000"')).code, 1, 'the whole tree');
  });

  test('wire-guest 9: files go up and down whole and in ranges, 64 MiB by digest', async () => {
    const large = randomBytes(64 * MiB);
    const sent = await ground.write(id, '/root/large', large);
    assert.deepEqual(sent.body, { path: '/root/large', bytes: large.length });
    assert.equal((await ground.run(id, 'sha256sum /root/large')).split(' ')[0], digestOf(large));
    const back = await ground.read(id, '/root/large');
    assert.equal(digestOf(new Uint8Array(await back.arrayBuffer())), digestOf(large));
    const part = await ground.read(id, '/root/large', 'bytes=1000-1999');
    assert.deepEqual(
      [part.status, part.headers.get('content-range')],
      [206, `bytes 1000-1999/${large.length}`],
    );
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(large.subarray(1000, 2000)));
    const tail = await ground.read(id, '/root/large', 'bytes=-10');
    assert.ok(Buffer.from(await tail.arrayBuffer()).equals(large.subarray(-10)));
    const beyond = await ground.read(id, '/root/large', `bytes=${large.length}-`);
    assert.deepEqual(
      [beyond.status, beyond.headers.get('content-range')],
      [416, `bytes */${large.length}`],
    );
    const taken = `${fileOf(id, '/root/large')}&overwrite=false`;
    assertRefused(await ground.as.send('PUT', taken, { raw: 'x' }), 409, 'exists');
    assertRefused(await ground.as.get(fileOf(id, '/root/none')), 404);
    await ground.run(id, 'rm /root/large; mkdir /root/d; touch /root/d/f; ln -s f /root/d/l');
    const listed = (await ground.as.get(`/computers/${id}/files/list?path=/root/d`)).body;
    assert.deepEqual(
      listed.entries.toSorted((a: { name: string }, b: { name: string }) =>
        a.name < b.name ? -1 : 1,
      ),
      [
        { name: 'f', type: 'file', size_bytes: 0 },
        { name: 'l', type: 'symlink' },
      ],
    );
  });

  test('wire-computers 5, wire-guest 0: a suspended computer stands still until somebody uses it', async () => {
    await ground.run(id, 'echo kept > /root/kept');
    const counter = 'while sleep 0.02; do printf . >> /root/count; done';
    await ground.as.post(`/computers/${id}/exec`, { command: counter, background: true });
    const count = async () => Number(await ground.run(id, 'stat -c %s /root/count'));
    await until('it counts', async () => (await count()) > 0);
    const session = await ground.session(id);
    const guest = await group();
    const used = guest.memoryBytes;
    await ground.post(`/computers/${id}/suspend`);
    const { status, suspended, running_ram_mb, vnc } = await record();
    assert.deepEqual([status, running_ram_mb, vnc], ['suspended', 0, undefined]);
    assert.match(suspended.at, /Z$/);
    assert.ok(guest.memoryBytes < used + 16 * MiB, `${used} bytes became ${guest.memoryBytes}`);
    assertRefused(await ground.as.get(`${fileOf(id, '/root/kept')}&no_wake=1`), 409, 'unavailable');
    assertRefused(await ground.as.get(`/computers/${id}/files/list?path=/`), 409, 'unavailable');
    assert.equal(await ground.status(id), 'suspended', 'looking wakes nobody');
    const now = () => ({ cpuNs: guest.cpuNs, counted: statSync(guest.at('/root/count')).size });
    const still = now();
    await pause(500);
    assert.deepEqual(now(), still, 'it neither counts nor uses a processor');
    const woken = await count();
    assert.equal(await ground.session(id), session, 'the same session');
    await until('it counts on', async () => (await count()) > woken);
    await ground.post(`/computers/${id}/suspend`);
    await ground.post(`/computers/${id}/start?resume_only=true`);
    assert.equal(await ground.session(id), session);
    await until('and on', async () => (await count()) > woken + 1);
  });

  test('wire-computers 5, wire-computers 2: stop and start boot anew and keep files and credentials', async () => {
    const [session, { vnc }] = [await ground.session(id), await record()];
    await ground.post(`/computers/${id}/stop`);
    assert.equal(await ground.status(id), 'stopped');
    const refused = await ground.as.post(`/computers/${id}/exec`, { command: 'true' });
    assertRefused(refused, 409, 'unavailable');
    await ground.post(`/computers/${id}/start`);
    assert.notEqual(await ground.session(id), session);
    assert.equal(await ground.run(id, 'cat /root/kept; hostname'), `kept\n${id}`);
    assert.deepEqual((await record()).vnc, vnc);
    await ground.desktopReady(id);
  });

  test('wire-computers 5, wire-computers 2: a restart boots anew and changes the credentials', async () => {
    const [session, { vnc }] = [await ground.session(id), await record()];
    await ground.post(`/computers/${id}/restart`);
    assert.notEqual(await ground.session(id), session);
    const now = (await record()).vnc;
    assert.notEqual(now.token, vnc.token);
    assert.notEqual(now.view_token, vnc.view_token);
    assert.equal(await ground.run(id, 'cat /root/kept'), 'kept');
  });

  test('wire-computers 6: a resize shows in what the kernel allows, and the disk only grows', async () => {
    await ground.post(`/computers/${id}/suspend`);
    const wish = { cpu: 2, ram_mb: 1536, disk_gb: 12 };
    const { body } = await ground.as.patch(`/computers/${id}`, wish);
    assert.deepEqual({ cpu: body.cpu, ram_mb: body.ram_mb, disk_gb: body.disk_gb }, wish);
    assert.equal((await ground.ended(body.operation_id)).state, 'succeeded');
    assert.equal(await ground.status(id), 'stopped', 'the saved session is gone');
    await ground.post(`/computers/${id}/start`);
    assert.equal(await ground.run(id, 'cat /root/kept'), 'kept');
    const guest = await group();
    assert.equal(guest.memoryLimitBytes, 1536 * MiB);
    // Incus shares the processors out a moment later.
    await until('it has its processors', () => guest.cpus === Math.min(2, cpus().length));
    assert.equal(await guest.diskLimitBytes(), 12 * 2 ** 30);
    await ground.post(`/computers/${id}/stop?force=true`);
    assertRefused(await ground.as.patch(`/computers/${id}`, { disk_gb: 11 }), 400);
    assert.equal((await record()).disk_gb, 12);
  });

  test('wire-computers 5: a clone is a machine of its own with the same files', async () => {
    const { status, body } = await ground.as.post(`/computers/${id}/clone`, { name: 'copy' });
    assert.deepEqual([status, body.status, body.build.source], [201, 'building', id]);
    assert.equal((await ground.ended(body.operation_id)).state, 'succeeded');
    assert.equal(await ground.status(body.id), 'stopped');
    await Promise.all([id, body.id].map((each) => ground.post(`/computers/${each}/start`)));
    const look = (of: string) => ground.run(of, 'cat /etc/machine-id; hostname; cat /root/kept');
    const [source = [], copy = []] = (await Promise.all([look(id), look(body.id)])).map((text) =>
      text.split('\n'),
    );
    assert.deepEqual(source.slice(1), [id, 'kept']);
    assert.deepEqual(copy.slice(1), [body.id, 'kept']);
    assert.match(copy[0] ?? '', /^[0-9a-f]{32}$/);
    assert.notEqual(copy[0], source[0]);
    await ground.run(body.id, 'echo changed > /root/kept');
    assert.equal(await ground.run(id, 'cat /root/kept'), 'kept', 'the source is as it was');
    assert.equal((await ground.as.delete(`/computers/${body.id}`)).body.ok, true);
  });

  test('Part 4 Workspaces 4, wire-computers 6, wire-computers 7: a stopped computer changes its workspace and its name', async () => {
    const { vnc } = await record();
    const workspace = (await ground.as.post('/workspaces', { name: 'Room' })).body.id;
    const move = (to: string | null) =>
      ground.as.put(`/computers/${id}/workspace`, { workspace_id: to });
    assertRefused(await move(workspace), 409, 'unsupported');
    await ground.post(`/computers/${id}/stop`);
    assert.equal((await move(workspace)).body.workspace_id, workspace);
    const inside = (await ground.as.get(`/computers?workspace_id=${workspace}`)).body;
    assert.deepEqual(
      inside.map((row: { id: string }) => row.id),
      [id],
    );
    await ground.post(`/computers/${id}/start`);
    assert.notEqual((await record()).vnc.token, vnc.token);
    const renamed = await ground.as.patch(`/computers/${id}`, { name: ' yours ' });
    assert.equal(renamed.body.name, 'yours');
    assert.equal(await ground.run(id, 'hostname'), id, 'a name is only a label');
  });

  test('wire-computers 3, wire-computers 5: what is deleted is gone from host and listing, and is told as deleted', async () => {
    const { body } = await ground.as.delete(`/computers/${id}`);
    assert.equal((await ground.ended(body.operation_id)).state, 'succeeded');
    assertRefused(await ground.as.get(`/computers/${id}`), 404);
    assert.deepEqual((await ground.as.get('/computers')).body, []);
    const [row] = (await ground.as.get('/computers?state=deleted')).body.filter(
      (each: { id: string }) => each.id === id,
    );
    assert.deepEqual([row.state, row.name], ['deleted', 'yours']);
    assert.deepEqual((await ground.report()).computers, []);
    assert.deepEqual(await ground.instances(), []);
    assert.deepEqual(ground.linkFolders(), []);
  });
}

/** For a person to look at, where one asks for it. */
async function keepScreen(name: string, image: Buffer): Promise<void> {
  const folder = process.env['CUBICLE_TEST_SCREENS'];
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name), image);
}
