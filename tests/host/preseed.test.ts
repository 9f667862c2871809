import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import type { IncusClient } from '../../packages/host/engine/incus/client.ts';
import { Away } from '../../packages/host/engine/incus/failure.ts';
import { placeOf } from '../../packages/host/engine/incus/place.ts';
import { preseed } from '../../packages/host/engine/incus/preseed.ts';
import { live } from './engine-suite.ts';

test('a pool that is being asked for while Incus is away is not made of plain folders', async (t) => {
  const folder = await mkdtemp(`${tmpdir()}/cubicle-preseed-`);
  t.after(() => rm(folder, { recursive: true, force: true }));
  const asked: string[] = [];
  const client = {
    find: async () => undefined,
    async change(_context, method, path, body) {
      if (method === 'PATCH') return {};
      asked.push(`${path} ${(body as { driver?: string }).driver}`);
      throw new Away('database is locked');
    },
  } satisfies Partial<IncusClient> as unknown as IncusClient;
  const place = { ...(await placeOf(folder)), folder };
  const options = { say: () => {}, poolGib: 10, own: true };
  await assert.rejects(preseed(live, client, place, options), Away);
  assert.deepEqual(asked, ['/1.0/storage-pools btrfs']);
});
