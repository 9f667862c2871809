// Foreground commands through the link: what is run, how, and what comes back.

import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import test from 'node:test';
import { limits } from '../../packages/contract/limits.ts';
import { unhung, until } from '../support/until.ts';
import { collected, computer, context, failure, good, Rig } from './rig.ts';

test('a command answers with its exit code and both streams', async (t) => {
  const rig = await Rig.of(t);
  const result = await rig.exec('printf out; printf err >&2; exit 3');
  assert.equal(result.exitCode, 3);
  assert.equal(result.stdout.toString(), 'out');
  assert.equal(result.stderr.toString(), 'err');
  assert.deepEqual(
    [result.timedOut, result.outTruncated, result.errTruncated],
    [false, false, false],
  );
  assert.deepEqual([result.stdoutBytes, result.stderrBytes], [3, 3]);
});

test('a command is a login shell’s, its signals are 128 and their number', async (t) => {
  const rig = await Rig.of(t);
  await writeFile(rig.at('root', '.profile'), 'export FROM_PROFILE=yes\n');
  const about = await rig.exec('shopt -q login_shell && echo login $FROM_PROFILE $HOME; pwd; tty');
  assert.equal(
    about.stdout.toString(),
    `login yes ${rig.at('root')}\n${rig.at('root')}\nnot a tty\n`,
  );
  assert.equal((await rig.exec('kill -TERM $$')).exitCode, 143);
  assert.equal((await rig.exec('kill -KILL $$')).exitCode, 137);
  assert.equal((await rig.exec('no-such-command-here')).exitCode, 127);
  assert.equal((await rig.exec('if')).exitCode, 2);
  assert.equal((await rig.exec('-x; echo $?')).stdout.toString(), '127\n');
  // Node ignores SIGPIPE; what it starts must not.
  const pipe = await rig.exec('yes | head -n 1; echo ${PIPESTATUS[0]}; umask');
  assert.equal(pipe.stdout.toString(), 'y\n141\n0022\n');
});

test('its output can be opened again by name, as scripts do', async (t) => {
  const rig = await Rig.of(t);
  const result = await rig.exec(
    'echo a >/dev/stdout; echo b >/dev/stderr; echo c | tee /dev/stderr',
  );
  assert.equal(result.stdout.toString(), 'a\nc\n');
  assert.equal(result.stderr.toString(), 'b\nc\n');
});

test('a folder is entered; where it is missing nothing is run and the exit code is 127', async (t) => {
  const rig = await Rig.of(t);
  const there = await rig.exec('pwd', { cwd: rig.at('files') });
  assert.equal(there.stdout.toString(), `${rig.at('files')}\n`);
  const touch = `touch ${rig.at('files', 'ran')}`;
  for (const cwd of [rig.at('nowhere'), '/etc/passwd']) {
    const missing = await rig.exec(touch, { cwd });
    assert.equal(missing.exitCode, 127);
    assert.match(missing.stderr.toString(), /can't cd to/);
  }
  await assert.rejects(readFile(rig.at('files', 'ran')), { code: 'ENOENT' });
});

test('variables are put on top of the profile and reach the command exactly', async (t) => {
  const rig = await Rig.of(t);
  await writeFile(
    rig.at('root', '.profile'),
    'export KEPT=profile PATH=/usr/bin:/bin TOLD=profile\n',
  );
  const env = {
    PATH: '/told/bin:/usr/bin:/bin',
    TOLD: 'by the caller',
    QUOTED: '$(touch x) "\'`\\ \n end',
    EMPTY: '',
    'odd-name.1': 'odd',
    IFS: ':',
    UID: 'cannot be set',
  };
  const result = await rig.exec('env -0; printf "in the shell: %s" "$TOLD$KEPT"', { env });
  const [shell, ...told] = result.stdout.toString().split('\0').toReversed();
  assert.equal(shell, 'in the shell: by the callerprofile');
  const seen = Object.fromEntries(told.map((line) => line.split(/=(.*)/s).slice(0, 2)));
  const { UID: _, ...settable } = env;
  for (const [name, value] of Object.entries({ ...settable, KEPT: 'profile' })) {
    assert.equal(seen[name], value, name);
  }
  assert.deepEqual(
    Object.keys(seen).filter((name) => name.startsWith('CUBICLE_')),
    [],
  );
  assert.equal(result.stderr.toString(), '');
});

test('as many and as long variables as the contract allows', async (t) => {
  const rig = await Rig.of(t);
  const env = Object.fromEntries(
    Array.from({ length: 64 }, (_, i) => {
      const name = `N${i}`;
      return [name, 'v'.repeat(4_096 - name.length - 1)];
    }),
  );
  const command = 'for n in {0..63}; do v=N$n; printf %s "${!v}"; done | wc -c';
  const result = await rig.exec(command, { env });
  const told = Object.values(env).join('').length;
  assert.equal(Number(result.stdout.toString()), told, result.stderr.toString());
});

test('a command longer than one argument may be, up to the cap of the request', async (t) => {
  const rig = await Rig.of(t);
  for (const length of [100_000, 140_000, limits.execBody - 1_000]) {
    const command = `: ${'x'.repeat(length)}\necho "$0 $#"; echo told; [ -e /proc/$$/fd/3 ] || echo closed`;
    const result = await rig.exec(command, { env: { A: 'b' } });
    assert.equal(result.exitCode, 0, result.stderr.toString());
    assert.equal(result.stdout.toString(), 'bash 0\ntold\nclosed\n');
  }
});

test('a command that takes too long is told so, runs on, and its output is lost', async (t) => {
  const rig = await Rig.of(t);
  const [go, went] = [rig.at('files', 'go'), rig.at('files', 'went')];
  const command = `echo early; while [ ! -e ${go} ]; do sleep 0.02; done; echo late; touch ${went}`;
  const result = await rig.links.exec(context, computer, { command }, 300);
  const { exitCode, timedOut, stdout, stderr, ...rest } = await collected(good(result));
  assert.deepEqual([exitCode, timedOut, stdout.length, stderr.length], [-1, true, 0, 0]);
  assert.deepEqual([rest.stdoutBytes, rest.outTruncated, rest.errTruncated], [0, false, false]);
  await writeFile(go, '');
  await until('the command ran on to its end', () => readFile(went));
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
});

test('a command that timed out while the guest stood still is run when it goes on', async (t) => {
  const rig = await Rig.of(t);
  const went = rig.at('files', 'went');
  rig.agent?.kill('SIGSTOP');
  const result = await rig.links.exec(context, computer, { command: `touch ${went}` }, 50);
  rig.agent?.kill('SIGCONT');
  assert.equal(good(result).timedOut, true);
  await until('the command ran', () => readFile(went));
  assert.equal((await rig.exec('echo well')).stdout.toString(), 'well\n');
});

test('a caller that gives up is told at once and the command runs on', async (t) => {
  const rig = await Rig.of(t);
  const went = rig.at('files', 'went');
  const control = new AbortController();
  const command = `sleep 0.3; touch ${went}`;
  const waiting = rig.links.exec(control, computer, { command }, 60_000);
  control.abort(new Error('the caller left'));
  await assert.rejects(waiting, /the caller left/);
  // Aborted before it was sent whole, it may not have been started; given up while it runs it is.
  const later = new AbortController();
  const running = rig.links.exec(
    later,
    computer,
    { command: `touch ${went}.1; ${command}` },
    60_000,
  );
  await until('it runs', () => readFile(`${went}.1`));
  later.abort(new Error('the caller left'));
  await assert.rejects(running, /the caller left/);
  await until('the command ran on to its end', () => readFile(went));
});

test('a daemon that holds the output does not hold the answer, and is not killed by it', async (t) => {
  const rig = await Rig.of(t);
  const [go, log] = [rig.at('files', 'go'), rig.at('files', 'log')];
  const daemon = `(trap 'echo pipe >>${log}' PIPE; while [ ! -e ${go} ]; do sleep 0.02; done; head -c 300000 /dev/zero; echo $? >>${log}) &`;
  const result = await unhung('the answer', rig.exec(`${daemon} echo started`));
  assert.equal(result.stdout.toString(), 'started\n');
  await writeFile(go, '');
  // More than a pipe holds: somebody must still be reading it.
  const told = await until('the daemon wrote it all', async () => {
    const text = await readFile(log, 'utf8');
    return text !== '' && text;
  });
  assert.equal(told, '0\n');
});

test('a daemon that never stops writing does not spoil the answer, nor keep anything', async (t) => {
  const rig = await Rig.of(t);
  for (let i = 0; i < 5; i += 1) {
    const begun = rig.at('files', `begun-${i}`);
    // Its first argument names the folder, so that it is found and ended with the test.
    const daemon = `(echo begun; touch ${begun}; exec yes ${rig.folder}) &`;
    const wait = `while [ ! -e ${begun} ]; do sleep 0.02; done`;
    const { stdout, stdoutBytes } = await rig.exec(`${daemon} ${wait}; sleep 0.05; exit 0`);
    assert.equal(stdout.length, stdoutBytes);
    assert.ok(stdoutBytes > 0);
  }
  const files = `ls -l /proc/${rig.agent?.pid}/fd | grep -c 'exec/file-' || true`;
  assert.equal((await rig.exec(files)).stdout.toString(), '0\n');
});

test('output is cut at 16 MiB a stream, to the byte, and the command is not held up', async (t) => {
  const rig = await Rig.of(t);
  const cap = limits.execOutput;
  const write = (out: number, err: number) =>
    rig.exec(
      `head -c ${out} /dev/zero | tr '\\0' o; head -c ${err} /dev/zero | tr '\\0' e >&2; exit 5`,
    );
  for (const [out, err] of [
    [cap - 1, 0],
    [cap, cap],
    [cap + 1, cap + 100_000],
    [3 * cap, 1],
  ] as const) {
    const result = await write(out, err);
    assert.equal(result.exitCode, 5);
    assert.deepEqual([result.outTruncated, result.errTruncated], [out > cap, err > cap]);
    assert.deepEqual(
      [result.stdout.length, result.stderr.length],
      [Math.min(out, cap), Math.min(err, cap)],
    );
    assert.ok(result.stdout.every((byte) => byte === 0x6f));
    assert.ok(result.stderr.every((byte) => byte === 0x65));
  }
});

test('many commands at once keep their output apart', async (t) => {
  const rig = await Rig.of(t);
  const results = await Promise.all(
    Array.from({ length: 60 }, (_, i) => rig.exec(`echo ${i}; echo e${i} >&2; exit ${i}`)),
  );
  results.forEach(({ exitCode, stdout, stderr }, i) => {
    assert.deepEqual([exitCode, String(stdout), String(stderr)], [i, `${i}\n`, `e${i}\n`]);
  });
});

test('more calls than the link has channels are busy, and nothing is lost', async (t) => {
  const rig = await Rig.of(t);
  const go = rig.at('files', 'go');
  const command = `while [ ! -e ${go} ]; do sleep 0.2; done; echo done`;
  const control = new AbortController();
  const waiting = Array.from({ length: 128 }, () =>
    rig.links.exec(control, computer, { command }, 60_000),
  );
  assert.equal(
    failure(await rig.links.exec(context, computer, { command: 'true' }, 1_000)),
    'busy',
  );
  await writeFile(go, '');
  for (const result of await Promise.all(waiting)) {
    assert.equal((await collected(good(result))).stdout.toString(), 'done\n');
  }
  assert.equal((await rig.exec('true')).exitCode, 0);
});

test('without an agent there is no answer but that', async (t) => {
  const rig = await Rig.of(t, { agent: false });
  const exec = () => rig.links.exec(context, computer, { command: 'true' }, 1_000);
  assert.equal(failure(await exec()), 'no_agent');
  assert.equal(
    failure(await rig.links.exec(context, 'vm-unknown', { command: 'true' }, 1)),
    'no_agent',
  );
  await rig.startAgent();
  assert.ok((await exec()).ok);
  await rig.killAgent();
  await until('the host notices', () => !rig.links.connected(computer));
  assert.equal(failure(await exec()), 'no_agent');
});

test('the folder for output is made again when somebody in the guest removes it', async (t) => {
  const rig = await Rig.of(t);
  assert.equal((await rig.exec('true')).exitCode, 0);
  await rm(rig.at('exec'), { recursive: true });
  assert.equal((await rig.exec('echo still')).stdout.toString(), 'still\n');
});
