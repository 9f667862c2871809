// Terminals on a real computer: whose shell it is, what it reaches, and what its sessions outlive.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { bundleAgent } from '../../packages/guest/bundle.ts';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { GuestLinks } from '../../packages/host/guest/links.ts';
import { Terminals } from '../../packages/host/terminal/terminals.ts';
import { Client } from '../guest/terminal-client.ts';
import { unhung } from '../support/until.ts';
import { type Desktop, DesktopGround } from './desktop-ground.ts';
import { live } from './engine-suite.ts';

const ability = await canRunEngine();
const skip = ability.can ? false : ability.reason;

let ground: DesktopGround;
let desktop: Desktop;
const links = new GuestLinks();
const terminals = new Terminals(links, { state: async () => 'running', starting: () => false });

async function open(session = 'main'): Promise<Client> {
  const asked = { session, cols: 100, rows: 30 };
  const result = await terminals.attach(live, desktop.id, asked);
  assert.ok(result.ok, JSON.stringify(result));
  return new Client(result.attachment);
}

before(async () => {
  if (skip !== false) return;
  ground = await DesktopGround.open();
  await writeFile(join(ground.folder, 'agent', 'agent.mjs'), await bundleAgent());
  desktop = await ground.start();
  await links.open(desktop.id, desktop.link);
  await unhung('the agent connects', links.whenConnected(live, desktop.id));
  await desktop.ready();
});

after(async () => {
  await links.stop();
  if (skip === false) await ground.close();
});

test(
  'the shell is the desktop user’s: account, groups, terminal, display, sudo',
  { skip },
  async () => {
    const client = await open();
    await client.calm();
    client.type('echo $(id -un) $(id -gn) $HOME $PWD $USER $TERM; stat -c "%U %a" $(tty)\n');
    await client.shows(
      /^user user \/home\/user \/home\/user user xterm-256color\r\nuser 6\d\d\r\n/m,
    );
    client.type('xdpyinfo | grep dimensions; sudo -n id -un; ps -o args= -C python3\n');
    await client.shows(/dimensions: +1280x800/);
    await client.shows(/^root\r\n/m);
    await client.shows(/python3 -I -S - \/run\/cubicle-agent\/terminals\/main\r\n/);
    // Its holder is out of the user's reach.
    client.type('kill -9 $PPID || echo not al""lowed\n');
    await client.shows(/not allowed/);
  },
);

test('sessions outlive a restart of the agent’s service, and a suspension', { skip }, async () => {
  const client = await open('kept');
  await client.calm();
  client.type('here=still; echo s""et\n');
  await client.shows(/set/);
  await desktop.root('systemctl restart --no-block cubicle-agent');
  await unhung('the client is let go', client.ends());
  await unhung('the agent comes back', links.whenConnected(live, desktop.id));
  const back = await open('kept');
  back.type('echo $here\n');
  await back.shows(/still/);
  await ground.opened.engine.freeze(live, desktop.id);
  await ground.opened.engine.thaw(live, desktop.id);
  const again = await open('kept');
  again.type('echo awake and $here\n');
  await again.shows(/awake and still/);
});
