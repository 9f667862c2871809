import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Census } from '../../packages/host/census.ts';
import { SimulatedEngine } from '../../packages/host/engine/simulated/engine.ts';
import { Events } from '../../packages/host/events/events.ts';
import { GuestLinks } from '../../packages/host/guest/links.ts';
import { Roster } from '../../packages/host/roster.ts';
import { live, newId, specOf } from './engine-suite.ts';

test('what the engine said before a command was carried out is not believed after it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-census-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const engine = new SimulatedEngine({ folder, delaysMs: { get: 20 } });
  const id = newId();
  await engine.importImage(live, 'image', { metadata: '', rootfs: '' });
  await engine.create(live, specOf(id), 'image');
  await engine.start(live, id);
  const [roster, links] = [new Roster(), new GuestLinks()];
  const census = new Census(engine, links, roster, new Events({ roster, links }));
  // Without an agent it is not sure whether it runs, and the engine says that it does.
  const resident = roster.add('vm-1', id, 'running');
  const asked = census.updateOne(live, 'vm-1');
  census.note(resident, 'stopped');
  await asked;
  assert.equal(resident.status, 'stopped');

  resident.status = 'running';
  await engine.stop(live, id, true);
  const again = census.updateOne(live, 'vm-1');
  resident.changing = true;
  await again;
  await census.update(live);
  assert.equal(resident.status, 'running', 'a restart is half done');
  delete resident.changing;
  await census.updateOne(live, 'vm-1');
  assert.equal(resident.status, 'stopped');
});
