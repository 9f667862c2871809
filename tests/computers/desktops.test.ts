// What is seen, driven and heard of desktops. One service serves all of it: each suite has a computer of its
// own, and setting up another engine would take longer than most of them.

import { after, before, describe, test } from 'node:test';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { desktop } from './desktop.suite.ts';
import { events } from './events.suite.ts';
import { ComputerGround } from './ground.ts';
import { pageContext } from './page-context.suite.ts';
import { soak } from './soak.suite.ts';
import { terminals } from './terminal.suite.ts';

const suites = {
  'a desktop': desktop,
  'the context of a page': pageContext,
  'the event socket': events,
  'watched trees under load': soak,
  'the terminal socket': terminals,
};

const ability = await canRunEngine();
if (!ability.can) test('desktops', { skip: ability.reason });
else describe('desktops', desktops);

function desktops(): void {
  let ground: ComputerGround;
  before(async () => {
    ground = await ComputerGround.open();
  });
  after(() => ground?.close());
  for (const [name, suite] of Object.entries(suites)) describe(name, () => suite(() => ground));
}
