// The desktop's session: commands in it, and the news that the desktop is ready.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { DesktopWatch } from '../../packages/guest/session.ts';
import { unhung, until } from '../support/until.ts';
import { computer, context, failure, good, Rig } from './rig.ts';

const needsRoot = { skip: process.getuid?.() !== 0 && 'needs root' };

test('a desktop command without a session is refused, in both ways to run it', async (t) => {
  const rig = await Rig.of(t);
  const request = { command: 'true', session: 'desktop' } as const;
  assert.equal(failure(await rig.links.exec(context, computer, request, 1_000)), 'desktop_absent');
  assert.equal(failure(await rig.links.execStart(context, computer, request)), 'desktop_absent');
  // A refused one takes no place.
  for (let i = 0; i < 20; i += 1) await rig.links.execStart(context, computer, request);
  good(await rig.links.execStart(context, computer, { command: 'true' }));
});

test(
  'a desktop command runs as the user, in the session, with groups and home',
  needsRoot,
  async (t) => {
    const rig = await Rig.of(t, { agent: false });
    await chmod(rig.folder, 0o755);
    await rig.startAgent({ CUBICLE_USER: 'nobody' });
    const session = `DISPLAY=:7\n# a comment\nQUOTED="two words"\nHOME=/elsewhere\n\nnonsense\nEMPTY=\n`;
    await writeFile(rig.at('run', 'session.env'), session);
    const desktop = { session: 'desktop', env: { TOLD: 'yes' } };
    const who = await rig.exec(
      'echo $(id -u) $(id -g) $(id -G) $USER $HOME $DISPLAY $QUOTED $TOLD',
      desktop,
    );
    assert.equal(
      who.stdout.toString(),
      '65534 65534 65534 nobody /nonexistent :7 two words yes\n',
      who.stderr.toString(),
    );
    // Its output is the user's own too, by whatever name.
    const names = await rig.exec('echo a >/dev/stdout; echo b >/dev/stderr', desktop);
    assert.deepEqual([String(names.stdout), String(names.stderr)], ['a\n', 'b\n']);
    // A folder that the user may not enter is as good as missing.
    await mkdir(rig.at('files', 'closed'), { mode: 0o700 });
    const closed = { session: 'desktop', cwd: rig.at('files', 'closed') };
    assert.equal((await rig.exec('echo ran', closed)).exitCode, 127);
    assert.equal((await rig.exec('pwd', { ...closed, session: 'system' })).exitCode, 0);
    const long = await rig.exec(`: ${'x'.repeat(200_000)}\nid -un`, desktop);
    assert.equal(long.stdout.toString(), 'nobody\n', long.stderr.toString());
    const { pid } = await rig.start('id -un; sleep 600', desktop);
    await until('it runs', async () =>
      String(good(await rig.links.poll(context, computer, pid)).stdout).includes('nobody'),
    );
    assert.equal(good(await rig.links.kill(context, computer, pid)).exitCode, 137);
  },
);

test('values of a session are read as systemd reads them', async (t) => {
  const rig = await Rig.of(t);
  const session = [
    String.raw`ESCAPED="a \"b\" \$c \`d\` \\e \f"`,
    `LINES="one\nTWO=two"`,
    `SINGLE='it\\n "is"'`,
    `OPEN="never closed`,
    'LAST=last',
  ];
  await writeFile(rig.at('run', 'session.env'), session.join('\n'));
  const names = ['ESCAPED', 'LINES', 'TWO', 'SINGLE', 'OPEN', 'LAST'];
  const told = await rig.exec(`printf '%s|' ${names.map((name) => `"$${name}"`).join(' ')}`, {
    session: 'desktop',
  });
  assert.equal(
    told.stdout.toString(),
    'a "b" $c `d` \\e \\f|one\nTWO=two||it\\n "is"|"never closed|last|',
  );
});

test('a session that is a link, a pipe or endless is none', async (t) => {
  const rig = await Rig.of(t);
  const file = rig.at('run', 'session.env');
  const kind = async () => {
    const request = { command: 'true', session: 'desktop' } as const;
    const result = await unhung('it', rig.links.exec(context, computer, request, 60_000));
    await rm(file);
    return failure(result);
  };
  await writeFile(rig.at('files', 'secret'), 'SECRET=told\n');
  await symlink(rig.at('files', 'secret'), file);
  assert.equal(await kind(), 'desktop_absent');
  execFileSync('mkfifo', [file]);
  assert.equal(await kind(), 'desktop_absent');
  await writeFile(file, 'A=b\n'.repeat(600_000));
  assert.equal(await kind(), 'desktop_absent');
});

test('a ready desktop is told when it becomes so, and when it no longer is', async (t) => {
  const rig = await Rig.of(t);
  const file = rig.at('run', 'desktop-ready');
  assert.equal(rig.links.ready(computer), false);
  const waiting = rig.links.whenReady(context, computer);
  await writeFile(file, '');
  await unhung('the desktop is ready', waiting);
  assert.equal(rig.links.ready(computer), true);
  await rm(file);
  await until('it is no longer', () => !rig.links.ready(computer));
  await writeFile(file, '');
  await unhung('it is again', rig.links.whenReady(context, computer));
  const told = rig.events.flatMap((event) => (event.type === 'desktop' ? [event.ready] : []));
  assert.deepEqual(told, [true, false, true]);
});

test('an agent that comes to a ready desktop says so in its greeting', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  await writeFile(rig.at('run', 'desktop-ready'), '');
  await rig.startAgent();
  assert.equal(rig.links.ready(computer), true);
  await rig.killAgent();
  await until('the host no longer knows', () => !rig.links.ready(computer));
});

test('a desktop that a greeting called ready and that is gone at once is told as gone', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-session-'));
  const file = join(folder, 'desktop-ready');
  const told: boolean[] = [];
  const watch = new DesktopWatch(file, (ready) => told.push(ready));
  t.after(async () => {
    watch.close();
    await rm(folder, { recursive: true });
  });
  // Before the watch has a turn.
  writeFileSync(file, '');
  assert.equal(watch.ready, true);
  rmSync(file);
  await until('it is told', () => told.length > 0);
  assert.deepEqual(told, [false]);
});

test('waiting ends with its signal', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const control = new AbortController();
  const connected = rig.links.whenConnected(control, computer);
  const ready = rig.links.whenReady(control, computer);
  control.abort(new Error('enough'));
  await assert.rejects(connected, /enough/);
  await assert.rejects(ready, /enough/);
  await assert.rejects(rig.links.ping(control, computer), /enough/);
});

test('a ping is answered by a living agent', async (t) => {
  const rig = await Rig.of(t);
  await Promise.all(
    Array.from({ length: 30 }, async () => good(await rig.links.ping(context, computer))),
  );
  const { agent } = rig;
  assert.ok(agent);
  agent.kill('SIGSTOP');
  const control = new AbortController();
  const frozen = rig.links.ping(control, computer);
  control.abort(new Error('no answer'));
  await assert.rejects(frozen, /no answer/);
  agent.kill('SIGCONT');
  good(await unhung('it thaws', rig.links.ping(context, computer)));
});
