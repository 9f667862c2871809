// Terminals through the shipped agent: real shells on real ptys (Part 4, Terminal socket).

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import test from 'node:test';
import { TerminalRig } from './terminal-client.ts';

test('Part 4 Terminal: a login shell echoes, runs, and knows its terminal', async (t) => {
  const rig = await TerminalRig.of(t);
  await writeFile(rig.rig.at('run', 'session.env'), 'DISPLAY=:7\n');
  const client = await rig.open();
  client.type('echo ty""ped $TERM $DISPLAY $HOME $(tty | cut -c1-9) $0\n');
  const shown = await client.shows(/typed (.*)\r\n/);
  assert.equal(shown[1], `xterm-256color :7 ${rig.rig.at('root')} /dev/pts/ -bash`);
  assert.match(client.text, /ty""ped/);
  client.type('shopt -q login_shell && echo log""in; pwd\n');
  await client.shows(/login\r\n/);
  await client.shows(new RegExp(`^${rig.rig.at('root')}\r\n`, 'm'));
});
