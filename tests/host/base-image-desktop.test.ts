/** Proves what a computer from the base image is like: its desktop, its user, its memory, its identity. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { until } from '../support/until.ts';
import { type Desktop, DesktopGround } from './desktop-ground.ts';

const ability = await canRunEngine();
if (ability.can) describe('a computer from the base image', desktops);
else test('a computer from the base image', { skip: ability.reason });

/** Of anonymous memory, everything included, in a guest that nobody uses. */
const mostIdleKb = 200 * 1024;

function desktops(): void {
  let ground: DesktopGround;
  let desktop: Desktop;
  before(async () => {
    ground = await DesktopGround.open();
    desktop = await (await ground.start()).ready();
  });
  after(() => ground.close());

  test('needs no unit that fails, and none that waits', async () => {
    const state = () => desktop.root('systemctl is-system-running || true');
    await until('the system has started', async () => (await state()) !== 'starting');
    assert.equal(await state(), 'running');
    assert.equal(await desktop.root('systemctl is-active cubicle-agent'), 'active');
    assert.equal(await desktop.root('systemctl --failed --plain --no-legend'), '');
  });

  test('idles in at most 200 MB of memory', async () => {
    const kinds = 'RssAnon|RssShmem';
    const sum = `cat /proc/[0-9]*/status | awk '/^(${kinds})/ { sum += $2 } END { print sum }'`;
    const used = Number(await desktop.root(sum));
    assert.ok(used > 0 && used <= mostIdleKb, `${used} kB`);
  });

  test('answers RFB on a socket of its own', async () => {
    const greet = `import socket; s = socket.socket(socket.AF_UNIX); s.connect("/run/cubicle/vnc.sock"); print(s.recv(12).decode())`;
    assert.equal(await desktop.root(`python3 -c '${greet}'`), 'RFB 003.008');
  });

  test('has its name, its address and its way out by DHCP', async () => {
    assert.equal(await desktop.root('hostname'), desktop.id);
    assert.equal(await desktop.user('getent hosts $(hostname) > /dev/null && echo known'), 'known');
    await until('there is a default route', async () =>
      (await desktop.root('ip route show default')).startsWith('default via'),
    );
    await until('there is a resolver', async () =>
      (await desktop.root('cat /etc/resolv.conf')).includes('nameserver'),
    );
  });

  test('lets its user be root without a password', async () => {
    assert.equal(await desktop.user('id --user --name'), 'user');
    assert.equal(await desktop.user('sudo --non-interactive id --user'), '0');
  });

  test('shows a panel and a picture, and the screen has the default size', async () => {
    assert.match(await desktop.user('wmctrl -lx'), /tint2/);
    assert.match(await desktop.user('xprop -root _XROOTPMAP_ID'), /0x/);
    assert.match(await desktop.user('xdpyinfo'), /dimensions: +1280x800 /);
    assert.match(await desktop.user('wmctrl -m'), /Name: Openbox/);
  });

  test('copies and pastes', async () => {
    const text = 'Grüße, 世界 🎉';
    // It goes to the background before the display has heard of it.
    await desktop.user(`printf %s '${text}' | xclip -selection clipboard > /dev/null 2>&1`);
    await until('it can be pasted', async () => {
      return (await desktop.user('xclip -selection clipboard -out')) === text;
    });
  });

  test('has every font cache ready', async () => {
    assert.doesNotMatch(await desktop.user('fc-cache --verbose'), /: caching/);
  });

  test('runs Chromium in its own sandbox', async () => {
    await desktop.user('setsid chromium about:blank > /dev/null 2>&1 &');
    const visible = 'xdotool search --onlyvisible --class chromium || true';
    await until('its window is there', async () => (await desktop.user(visible)) !== '');
    const renderers = `pgrep --full '[c]hromium --type=renderer' || true`;
    // The namespace, and the filters besides the engine's, which everything in the guest has.
    const bounds = async (pid: string) => [
      await desktop.root(`readlink /proc/${pid}/ns/user`),
      await desktop.root(`grep ^Seccomp_filters: /proc/${pid}/status`),
    ];
    const outer = await bounds('1');
    // A renderer begins by shutting itself in, and one that is not needed may end.
    await until('a renderer is shut in', async () => {
      const renderer = (await desktop.root(renderers)).split('\n').at(-1) ?? '';
      return (await bounds(renderer)).every((bound, at) => bound !== outer[at]);
    });
    assert.doesNotMatch(
      await desktop.root('cat /proc/[0-9]*/cmdline | tr "\\0" " "'),
      /--no-sandbox/,
    );
    await desktop.user('pkill chromium');
  });

  test('comes back when its X server dies', async () => {
    const first = await desktop.readySince();
    await desktop.root('pkill -KILL Xvnc');
    await until('another session is ready', async () => (await desktop.readySince()) !== first);
    assert.match(await desktop.user('wmctrl -m'), /Name: Openbox/);
  });

  for (const [resolution, size, depth] of [
    ['1600x900', '1600x900', 24],
    ['640x480x16', '640x480', 16],
    ['3840x2160x32', '3840x2160', 32],
  ] as const) {
    test(`has the screen that it was asked for: ${resolution}`, async () => {
      const other = await (await ground.start(resolution)).ready();
      const screen = await other.user('xdpyinfo');
      assert.match(screen, new RegExp(`dimensions: +${size} `));
      assert.match(screen, new RegExp(`depth of root window: +${depth} planes`));
      await ground.stop(other);
    });
  }

  test('is somebody else after it was copied', async () => {
    const id = await desktop.root('cat /etc/machine-id');
    assert.match(id, /^[0-9a-f]{32}$/);
    await ground.stop(desktop);
    const copy = await (await ground.start(undefined, desktop)).ready();
    assert.match(await copy.root('cat /etc/machine-id'), /^[0-9a-f]{32}$/);
    assert.notEqual(await copy.root('cat /etc/machine-id'), id);
    assert.equal(await copy.root('hostname'), copy.id);
  });
}
