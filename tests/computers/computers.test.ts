// What a computer is to whoever uses it, through the public API. One service serves all of it: each suite has
// computers of its own, and setting up another engine would take longer than most of them.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { authority } from '../support/receiver.ts';
import { builds } from './builds.suite.ts';
import { desktopPages, noBrowser } from './desktop-page.suite.ts';
import { ComputerGround } from './ground.ts';
import { isolation } from './isolation.suite.ts';
import { life } from './lifecycle.suite.ts';
import { screens } from './screen.suite.ts';
import { secrets } from './secrets.suite.ts';
import { webhooks } from './webhooks.suite.ts';

const ability = await canRunEngine();
if (!ability.can) test('computers', { skip: ability.reason });
else describe('computers', computers);

function computers(): void {
  let ground: ComputerGround;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cubicle-authority-'));
    const ca = join(folder, 'authority.pem');
    await writeFile(ca, authority.cert);
    ground = await ComputerGround.open({
      // On every address, as an operator may have it: it is the firewall that keeps guests away.
      CUBICLE_HOST: '0.0.0.0',
      CUBICLE_LOG: 'debug',
      CUBICLE_WEBHOOK_ALLOW: '127.0.0.0/8',
      CUBICLE_WEBHOOK_CA: ca,
    });
  });
  after(async () => {
    await ground?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const theGround = () => ground;
  // The first one leaves nothing, and looks whether that is so.
  describe('the life of a computer', () => life(theGround));
  describe('templates of one’s own', { timeout: 300_000 }, () => builds(theGround));
  describe('webhooks of computers', () => webhooks(theGround));
  describe('isolation', () => isolation(theGround));
  describe('bound secrets', () => secrets(theGround));
  const pages = { timeout: 300_000, ...(noBrowser !== undefined && { skip: noBrowser }) };
  describe('pages of live desktops', pages, () => desktopPages(theGround));
  // The last one restarts the service.
  describe('live desktops', { timeout: 300_000 }, () => screens(theGround));
}
