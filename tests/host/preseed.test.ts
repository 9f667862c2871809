import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { test, type TestContext } from 'node:test';
import type { IncusClient } from '../../packages/host/engine/incus/client.ts';
import { Away } from '../../packages/host/engine/incus/failure.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { preseed } from '../../packages/host/engine/incus/preseed.ts';
import { birthOf } from '../../packages/host/engine/incus/processes.ts';
import { live } from './engine-suite.ts';

const options = { say: () => {}, poolGib: 10, own: true };

async function placeFor(t: TestContext): Promise<Place> {
  const folder = await mkdtemp(`${tmpdir()}/cubicle-preseed-`);
  t.after(() => rm(folder, { recursive: true, force: true }));
  return { ...(await placeOf(folder)), folder };
}

test('a pool that is being asked for while Incus is away is not made of plain folders', async (t) => {
  const asked: string[] = [];
  const client = {
    find: async () => undefined,
    async change(_context, method, path, body) {
      if (method === 'PATCH') return {};
      asked.push(`${path} ${(body as { driver?: string }).driver}`);
      throw new Away('database is locked');
    },
  } satisfies Partial<IncusClient> as unknown as IncusClient;
  const place = await placeFor(t);
  await assert.rejects(preseed(live, client, place, options), Away);
  assert.deepEqual(asked, ['/1.0/storage-pools btrfs']);
});

test('a name server that a killed Incus left does not keep the address of a new bridge', async (t) => {
  const place = await placeFor(t);
  const waits = ['-e', 'setTimeout(() => {}, 600_000)'];
  const left = spawn(process.execPath, [...waits, '--', `--interface=${place.bridge}`]);
  t.after(() => left.kill('SIGKILL'));
  const client = {
    find: async () => undefined,
    async change(_context, _method, path) {
      if (path === '/1.0/networks') throw new Away('enough is known');
      return {};
    },
  } satisfies Partial<IncusClient> as unknown as IncusClient;
  await assert.rejects(preseed(live, client, place, options), Away);
  assert.equal(await birthOf(left.pid as number), undefined, 'it has ended');
});
