import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { assertRefused } from '../support/assertions.ts';
import type { Client } from '../support/client.ts';
import { made } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';
import type { TestAgent } from '../support/simulated-host.ts';

suite('commands in the foreground', () => {
  let service: TestService;
  let as: Client;
  let id: string;
  let agent: TestAgent;
  before(async () => {
    service = await startService({ simulated: true });
    ({ as } = await service.account());
    ({ id } = await made(as));
    agent = await service.host.agentOf(id);
  });
  after(() => service.stop());

  const send = (json: unknown) => as.send('POST', `/computers/${id}/exec`, { json });
  const exec = async (command: string, more: object = {}) => {
    const answer = await send({ command, ...more });
    assert.equal(answer.status, 200, answer.text);
    const { stdout_b64, stderr_b64, ...rest } = answer.body;
    return { stdout: text(stdout_b64), stderr: text(stderr_b64), ...rest };
  };
  const text = (base64: string) => Buffer.from(base64, 'base64').toString('latin1');

  test('wire-guest 3: the answer has exactly its fields; a command that fails is 200 with its code', async () => {
    const { status, body } = await send({ command: 'printf "a\\0\\377"; printf oops >&2; exit 3' });
    assert.deepEqual(
      [status, body],
      [
        200,
        {
          exit_code: 3,
          timed_out: false,
          stdout_b64: Buffer.from([0x61, 0, 0xff]).toString('base64'),
          stderr_b64: Buffer.from('oops').toString('base64'),
          out_truncated: false,
          err_truncated: false,
        },
      ],
    );
    const quiet = await send({ command: 'true' });
    assert.deepEqual([quiet.body.stdout_b64, quiet.body.stderr_b64], ['', '']);
    for (const length of [1, 2, 3, 65_536, 200_001]) {
      const { stdout } = await exec(`head -c ${length} /dev/zero`);
      assert.equal(stdout.length, length);
    }
  });

  test('wire-guest 3: a field it cannot take is 400 with a sentence that names it, and nothing runs', async () => {
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`N${n}`, '']));
    const fields: Record<string, unknown[]> = {
      command: [undefined, '', ' \n\t', 7, null, ['ls'], 'a\0b', 'lone \ud800'],
      timeout_s: [0, -1, 601, 1.5, '30', null, 2 ** 53],
      session: ['system', '', null, 1],
      background: ['true', 1, null],
      cwd: [
        '',
        'relative',
        './x',
        7,
        null,
        '/a\nb',
        `/${'x'.repeat(4096)}`,
        '/\u00e9'.padEnd(4095, '\u00e9'),
      ],
      env: [
        [],
        'A=1',
        null,
        { '': 'x' },
        { 'A=B': 'x' },
        { A: 1 },
        { A: 'x\0' },
        { A: 'x'.repeat(4095) },
        many,
      ],
      retain_output: [true],
      stdin: ['x'],
      unknown: [1],
    };
    const marker = agent.at('ran');
    for (const [field, values] of Object.entries(fields)) {
      for (const value of values) {
        const answer = await send({ command: `touch ${marker}`, [field]: value });
        assertRefused(answer, 400);
        assert.match(answer.body.error, new RegExp(field), JSON.stringify(value)?.slice(0, 60));
      }
    }
    for (const json of [null, [], 'ls', 7]) assertRefused(await send(json), 400);
    assert.equal((await exec(`test -e ${marker}`)).exit_code, 1);
  });

  test('wire-guest 3, Part 8 Sizes: a body of up to 4 MiB, then 413', async () => {
    const length = 4 * 2 ** 20 - Buffer.byteLength('{"command":""}');
    const command = ': '.padEnd(length, 'x');
    const whole = await send({ command });
    assert.notEqual(whole.status, 413);
    const answer = await send({ command: `${command}x` });
    assertRefused(answer, 413);
    assert.match(answer.body.error, /4 MiB/);
  });

  test('wire-guest 3: a directory and an environment of its own', async () => {
    const { stdout } = await exec('pwd; echo "$A-$B"', {
      cwd: agent.folder,
      env: { A: 'x'.repeat(4094), B: '\u00fc "$A"' },
    });
    const [where, values] = Buffer.from(stdout, 'latin1').toString('utf8').split('\n');
    assert.deepEqual([where, values], [agent.folder, `${'x'.repeat(4094)}-\u00fc "$A"`]);
    const lost = await exec('echo ran', { cwd: agent.at('missing') });
    assert.deepEqual([lost.exit_code, lost.stdout], [127, '']);
    const full = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`N${n}`, `${n}`]));
    assert.equal((await exec('echo $N63', { env: full })).stdout, '63\n');
  });

  test('wire-guest 3: a command that takes too long is answered with -1, and runs on', async () => {
    const marker = agent.at('later');
    const { exit_code, timed_out, stdout } = await exec(
      `echo early; while ! test -e ${marker}.go; do sleep 0.05; done; touch ${marker}`,
      { timeout_s: 1 },
    );
    assert.deepEqual([exit_code, timed_out, stdout], [-1, true, '']);
    const ran = await exec(
      `touch ${marker}.go; while ! test -e ${marker}; do sleep 0.05; done; echo it ran on`,
    );
    assert.equal(ran.stdout, 'it ran on\n');
    assert.equal((await exec('true', { timeout_s: 600 })).exit_code, 0);
  });

  test('wire-guest 3: output past 16 MiB a stream is cut and marked', async () => {
    const most = 16 * 2 ** 20;
    const cut = await exec(`head -c ${most + 1} /dev/zero; head -c ${most} /dev/zero >&2`);
    assert.deepEqual([cut.stdout.length, cut.out_truncated], [most, true]);
    assert.deepEqual([cut.stderr.length, cut.err_truncated], [most, false]);
  });

  test('wire-guest 3, wire-guest 0: without a desktop session a command for it is 409 without a reason', async () => {
    assertRefused(await send({ command: 'true', session: 'desktop' }), 409);
    const background = await send({ command: 'true', session: 'desktop', background: true });
    assertRefused(background, 409);
  });

  test('Part 5 2, Part 7: another account’s computer and one that is none are 404', async () => {
    const stranger = await service.account();
    for (const [who, where] of [
      [stranger.as, id],
      [as, 'vm-000000000000'],
      [as, 'x'],
    ] as const) {
      assertRefused(await who.post(`/computers/${where}/exec`, { command: 'true' }), 404);
      assertRefused(await who.get(`/computers/${where}/exec/1`), 404);
      assertRefused(await who.delete(`/computers/${where}/exec/1`), 404);
      assertRefused(await who.get(`/computers/${where}/executions/exec_${'0'.repeat(32)}`), 404);
      assertRefused(await who.get(`/computers/${where}/files?path=/etc/hostname`), 404);
      assertRefused(await who.get(`/computers/${where}/files/list?path=/`), 404);
      const put = await who.send('PUT', `/computers/${where}/files?path=/tmp/x`, { raw: 'x' });
      assertRefused(put, 404);
    }
  });
});
