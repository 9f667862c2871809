// Suspending what nobody uses, on real computers, by a clock that the test moves: the control plane and the
// host daemon run in this process.

import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { canRunEngine } from '../../packages/host/engine/incus/install.ts';
import { placeOf } from '../../packages/host/engine/incus/place.ts';
import { erase } from '../../packages/host/engine/incus/sweep.ts';
import { type RunningHost, startHost } from '../../packages/host/main.ts';
import { endWithTheProcess, removeGround } from '../host/incus-ground.ts';
import type { Client } from '../support/client.ts';
import { startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const ability = await canRunEngine();
if (!ability.can) test('idle computers', { skip: ability.reason });
else describe('idle computers', idle);

const minute = 60_000;

function idle(): void {
  let passed = 0;
  const now = () => performance.now() + passed;
  let dataDir: string;
  let service: TestService;
  let host: RunningHost | undefined;
  let as: Client;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'cubicle-idle-'));
    const place = await placeOf(dataDir);
    endWithTheProcess(place, dataDir, () => erase(place));
    const cacheDir = join(homedir(), '.cache', 'cubicle');
    const settings = { dataDir, cacheDir, engine: 'incus', pool: 0, diskGb: 200 } as const;
    host = await startHost(settings, () => {}, { now });
    service = await startService();
    await service.register(host.row);
    ({ as } = await service.account());
  });
  after(async () => {
    await service?.stop();
    await host?.stop();
    const place = await placeOf(dataDir);
    await erase(place);
    await removeGround(dataDir, place);
  });

  const create = async (minutes?: number | null): Promise<string> => {
    const { body } = await as.post('/computers', { size: 'small' });
    await until(
      'it answers',
      async () => (await exec(body.id, { command: 'true' })).status === 200,
    );
    if (minutes !== undefined) {
      const set = await as.patch(`/computers/${body.id}`, { idle_suspend_min: minutes });
      assert.equal(set.status, 200, set.text);
    }
    return body.id;
  };
  const exec = (id: string, wish: object) => as.post(`/computers/${id}/exec`, wish);
  const status = async (id: string) => (await as.get(`/computers/${id}`)).body.status;
  const suspended = (id: string) =>
    until(`${id} is suspended`, async () => (await status(id)) === 'suspended');
  /** The one that was suspended last proves that everybody was looked at. */
  const looked = async () => {
    const witness = await create(1);
    passed += minute;
    await suspended(witness);
    await as.delete(`/computers/${witness}`);
  };

  test('wire-computers 6: after its own time, or the host’s, an unused computer is suspended, and 0 is never', async () => {
    const [follows, own, never] = await Promise.all([create(), create(5), create(0)]);
    passed += 4 * minute;
    await looked();
    // The witness took another minute.
    await suspended(own);
    assert.deepEqual([await status(follows), await status(never)], ['running', 'running']);
    passed += 25 * minute;
    await suspended(follows);
    passed += 20_000 * minute;
    await looked();
    assert.equal(await status(never), 'running');
    for (const id of [follows, own]) {
      await until('what sleeps has given its room back', async () => {
        return (await as.get(`/computers/${id}`)).body.running_ram_mb === 0;
      });
    }
    assert.equal((await exec(own, { command: 'true' })).status, 200, 'use wakes it');
    assert.equal(await status(own), 'running');
    await as.patch(`/computers/${own}`, { idle_suspend_min: null });
    assert.equal('idle_suspend_min' in (await as.get(`/computers/${own}`)).body, false);
    for (const id of [follows, own, never]) await as.delete(`/computers/${id}`);
  });

  test('wire-guest 0: what is in use stays: a running command, before or behind; looking is no use', async () => {
    const [driven, background, watched] = await Promise.all([create(5), create(5), create(5)]);
    const command = 'touch /root/begun; while ! test -e /root/end; do sleep 0.05; done';
    const long = exec(driven, { command, timeout_s: 600 });
    const begun = await exec(background, { command, background: true });
    assert.equal(begun.status, 202, begun.text);
    await until('the other one runs too', async () => {
      return (await exec(driven, { command: 'test -e /root/begun' })).body.exit_code === 0;
    });
    passed += 10 * minute;
    await until('it is looked at', async () => {
      await as.get(`/computers/${watched}/files/list?path=/`);
      await pause(200);
      return (await status(watched)) === 'suspended';
    });
    await looked();
    assert.deepEqual([await status(driven), await status(background)], ['running', 'running']);

    for (const id of [driven, background]) {
      const path = `/computers/${id}/files?path=/root/end`;
      assert.equal((await as.send('PUT', path, { raw: '' })).status, 200);
    }
    assert.equal((await long).body.exit_code, 0);
    await until('the command has ended', async () => {
      const { body } = await as.get(`/computers/${background}/exec/${begun.body.pid}`);
      return body.running === false;
    });
    assert.equal(await status(driven), 'running', 'its end was a use');
    passed += 5 * minute;
    await Promise.all([suspended(driven), suspended(background)]);
  });
}
