import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { buildPhases } from '../../packages/contract/host/builds.ts';
import { quoted } from '../../packages/host/builds/quoted.ts';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { helloScript, isMirrorAway, noMirror } from '../support/mirror.ts';
import { until } from '../support/until.ts';
import { BuildGround } from './build-ground.ts';
import { apt, env, file, finish, mkdir, run } from './build-orders.ts';

/** Nothing else on any disk is like it. */
const token = 'tok-6f1d0c9be27a4a53-Zq';
const hash = createHash('sha256').update(token).digest('hex');

/** Of the finished computer: quotes, dollars and line ends are taken as they are. */
const variables = {
  PLAIN: 'plain',
  TRICKY: `it's "so" $HOME \`id\` \\n #1`,
  LINES: 'one\nTWO=two',
};
const print = `printf '%s|' "$PLAIN" "$TRICKY" "$LINES"`;
const printed = `${Object.values(variables).join('|')}|`;

const ability = await canRunEngine();
if (!ability.can) test('builds in a real guest', { skip: ability.reason });
else suite('builds in a real guest', builds);

function builds(): void {
  let ground: BuildGround;
  before(async () => {
    ground = await BuildGround.open();
  });
  after(() => ground.close());

  const image = async () => {
    const found = (await ground.instances()).find(({ name }) => name.startsWith('bld-'));
    assert.ok(found);
    return found;
  };

  test('Part 4 Builds 4: every kind of step is done, in order, and secrets are variables alone', async (t) => {
    const others = `env -i setpriv --reuid 1000 --regid 1000 --init-groups cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline`;
    const whole = (hello: ReturnType<typeof apt | typeof run>) =>
      ground.orders.finished(
        'whole',
        [
          hello,
          env({ GREETING: `hello's "world"` }),
          mkdir('/srv/a/b', '0750', 'user:user'),
          file('/srv/a/c/greeting', 'grüezi\n', '0640', 'user'),
          run(`hello >/srv/a/hello\necho "$GREETING" >>/srv/a/hello`),
          // Its own processes have it; nobody else sees it.
          run(`printf %s "$TOKEN" | sha256sum | grep -q ^${hash}`),
          run(`! ${others} 2>/dev/null | grep -aqFf <(printf %s "$TOKEN")`),
          run(`echo "history" >/root/.bash_history; touch /tmp/left /var/tmp/left; logger left`),
          finish(variables),
        ],
        { secrets: { TOKEN: token } },
      );
    let told = await whole(apt('hello'));
    if (isMirrorAway(told.error)) {
      t.diagnostic(noMirror);
      await ground.orders.remove('whole');
      told = await whole(run(helloScript));
    }
    assert.equal(told.error, undefined);
    assert.equal(told.status, 'succeeded');
    await ground.assertOnly({ computers: 0, images: 1 });
  });

  test('Part 4 Builds 4: no secret is in the image, in the engine or in what the host keeps', async () => {
    const built = await image();
    assert.doesNotMatch(JSON.stringify(built), new RegExp(token));
    // The other text shows that what is there is found.
    const found = await ground.search([token, 'grüezi'], { instance: built.name });
    assert.equal(found.length, 1);
    assert.match(found[0] ?? '', /\/srv\/a\/c\/greeting:grüezi$/);
    assert.deepEqual(await ground.search([token], 'host'), []);
    assert.doesNotMatch(ground.said, new RegExp(token));
  });

  test('an image outlives the daemon and the engine', async () => {
    await ground.end('SIGKILL');
    await ground.start();
    await ground.killIncus();
    assert.deepEqual(await ground.orders.list(), [{ id: 'whole', state: 'held' }]);
    assert.equal((await ground.orders.tell('whole'))?.status, 'succeeded');
    assert.deepEqual((await ground.orders.report()).computers, []);
  });

  test('Part 4 Builds 10: a computer from it has what the steps made, and its variables everywhere', async () => {
    for (const id of ['vm-1', 'vm-2']) {
      const made = await ground.orders.create(id, 'whole', true);
      assert.deepEqual(made, { outcome: 'done', status: 'running' });
    }
    const about = (
      await ground.run('vm-1', `stat -c '%a %U:%G' /srv/a/b /srv/a/c/greeting`)
    ).trim();
    assert.equal(about, '750 user:user\n640 user:root');
    assert.equal(await ground.run('vm-1', 'cat /srv/a/c/greeting'), 'grüezi\n');
    const hello = await ground.run('vm-1', 'cat /srv/a/hello');
    assert.equal(hello, `Hello, world!\nhello's "world"\n`);
    assert.equal(await ground.run('vm-1', print), printed);
    assert.equal(await ground.run('vm-1', print, 'desktop'), printed);
    const session = `tr '\\0' '\\n' </proc/$(pgrep -xo openbox)/environ`;
    const own = await ground.run('vm-1', session);
    for (const [name, value] of Object.entries(variables)) {
      assert.ok(own.includes(`${name}=${value}\n`), name);
    }
    assert.equal(await ground.run('vm-1', `su --login user --command ${quoted(print)}`), printed);
    assert.equal(await ground.run('vm-1', `su user --command 'printf %s "$PLAIN"'`), 'plain');
    assert.equal(await ground.run('vm-1', 'printf %s "$GREETING"'), '');
  });

  test('it is clean, and each of its computers is somebody else', async () => {
    const left = `ls -A /var/lib/apt/lists /var/tmp; ls /var/cache/apt/archives/*.deb /root/.bash_history 2>&1 | grep -v 'No such'; find /var/log -type f -size +0`;
    assert.equal(await ground.run('vm-1', `${left}; true`), '/var/lib/apt/lists:\n\n/var/tmp:\n');
    const ids = await Promise.all(
      ['vm-1', 'vm-2'].map((id) => ground.run(id, 'cat /etc/machine-id /etc/hostname')),
    );
    assert.match(ids[0] ?? '', /^[0-9a-f]{32}\nvm-1\n$/);
    assert.match(ids[1] ?? '', /^[0-9a-f]{32}\nvm-2\n$/);
    assert.notEqual(ids[0]?.slice(0, 32), ids[1]?.slice(0, 32));
    for (const id of ['vm-1', 'vm-2']) {
      await ground.orders.command(id, { kind: 'delete', operation: `op-delete-${id}` });
    }
    await ground.orders.remove('whole');
    await ground.assertOnly({ computers: 0, images: 0 });
  });

  test('a failed step ends the build: the end of its output is told without secrets', async () => {
    const noise = `for i in {1..2000}; do echo "line $i"; done; echo "it is $TOKEN" >&2`;
    const told = await ground.orders.finished(
      'failing',
      [run('true'), run(`${noise}\nfalse\necho not reached`), run('true'), finish()],
      { secrets: { TOKEN: token } },
    );
    assert.equal(told.status, 'failed');
    assert.equal(told.note, 'Step 2 failed: exit code 1.');
    assert.match(told.error ?? '', /line 2000\nit is \*\*\*$/);
    assert.ok(Buffer.byteLength(told.error ?? '') <= 4_096);
    assert.deepEqual(
      told.steps.map(({ status }) => status),
      ['done', 'failed', 'skipped', 'skipped'],
    );
    await ground.assertOnly({ computers: 0, images: 0 });
  });

  test('what a guest does to itself is a failed build', async () => {
    const told = await ground.orders.finished('off', [
      run('systemctl poweroff; sleep 60'),
      finish(),
    ]);
    assert.equal(told.status, 'failed');
    assert.match(told.note, /went away|exit code/);
    await ground.assertOnly({ computers: 0, images: 0 });
  });

  test('Part 4 Builds 7: a second order is busy, and a build that is removed ends', async () => {
    const slow = [run('sleep 600'), finish()];
    assert.deepEqual(await ground.orders.order('slow', slow), { outcome: 'accepted' });
    const busy = { outcome: 'refused', why: 'busy' };
    assert.deepEqual(await ground.orders.order('other', slow), busy);
    await until('it sleeps', async () => (await ground.orders.tell('slow'))?.step === 1);
    await ground.orders.remove('slow');
    assert.equal(await ground.orders.tell('slow'), undefined);
    await ground.assertOnly({ computers: 0, images: 0 });
  });

  /** Long enough to be met in any phase. */
  const lasting = run('sleep 600');
  const stopsSlowly = run(
    `systemd-run -q -p Type=oneshot -p RemainAfterExit=yes -p 'ExecStop=sleep 4' true`,
  );
  for (const phase of ['planning', 'copying', 'building', 'publishing'] as const) {
    test(`a daemon that is killed while ${phase} leaves nothing to the next`, async () => {
      const step = phase === 'publishing' ? stopsSlowly : lasting;
      await ground.orders.order(phase, [step, finish()]);
      await until(`it is ${phase}`, async () => {
        const told = await ground.orders.tell(phase);
        return buildPhases.indexOf(told?.phase ?? 'unknown') >= buildPhases.indexOf(phase);
      });
      await ground.end('SIGKILL');
      await ground.start();
      await until('nothing is left', async () => {
        await ground.assertOnly({ computers: 0, images: 0 });
        return true;
      });
      assert.equal(await ground.orders.tell(phase), undefined);
      assert.deepEqual(await ground.orders.list(), []);
    });
  }
}
