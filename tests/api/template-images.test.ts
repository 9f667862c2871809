import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { HostOutcome } from '../../packages/contract/host/api.ts';
import { assertRefused } from '../support/assertions.ts';
import { keyedCreate, small } from '../support/computers.ts';
import { startService, type TestService } from '../support/service.ts';

suite('images of templates', () => {
  let service: TestService;
  let folder: string;
  let host: Server;
  let outcome: HostOutcome;
  /** A host that answers every command as the test wants. */
  before(async () => {
    service = await startService();
    folder = await mkdtemp(join(tmpdir(), 'cubicle-preparing-'));
    await writeFile(join(folder, 'token'), 'secret');
    host = createServer((request, response) => {
      request.resume().on('end', () => response.end(JSON.stringify(outcome)));
    });
    await new Promise<void>((resolve) => host.listen(join(folder, 'host.sock'), resolve));
    const address = `unix:${join(folder, 'host.sock')}`;
    await service.register({
      id: 'host-preparing0',
      address,
      cpu: 64,
      ram_mb: 65_536,
      disk_gb: 1_000,
    });
  });
  after(async () => {
    await service.stop();
    host.closeAllConnections();
    host.close();
    await rm(folder, { recursive: true, force: true });
  });

  const preparing = (state: 'preparing' | 'failed', error: string): HostOutcome => ({
    outcome: 'refused',
    why: 'image_preparing',
    preparation: { state, error },
  });

  test('wire-computers 4: a create whose image is being prepared makes nothing, and goes on with what it was given', async () => {
    const { as } = await service.account();
    const wish = { ...small, template: 'tiling' };
    outcome = preparing('preparing', '');
    const waits = await keyedCreate(as, 'one', wish);
    const { template_transfer } = waits.body;
    assert.match(template_transfer, /^\S+$/);
    assertRefused(waits, 409, undefined, {
      code: 'template_image_preparing',
      template_transfer,
      preparation: { state: 'preparing', error: '' },
    });
    assert.match(String(waits.headers['retry-after']), /^[1-9]\d*$/);
    assert.deepEqual((await as.get('/operations')).body.operations, [], 'nothing was done');

    const error = 'The image could not be made.';
    outcome = preparing('failed', error);
    const failed = await as.post('/computers', { ...wish, template_transfer });
    assert.deepEqual(failed.body.preparation, { state: 'failed', error });
    for (const template of ['base', undefined]) {
      assertRefused(await as.post('/computers', { ...small, template, template_transfer }), 404);
    }
    const other = await service.account();
    assertRefused(await other.as.post('/computers', { ...wish, template_transfer }), 404);
    assertRefused(await as.post('/computers', { size: 'small', template_transfer }), 400);
    assertRefused(await as.post('/computers', { ...wish, template_transfer: ' ' }), 400);

    outcome = { outcome: 'done', status: 'running' };
    const done = await keyedCreate(as, 'one', { ...wish, template_transfer });
    assert.equal(done.status, 201, done.text);
    assert.deepEqual([done.body.template, done.body.desktop], ['tiling', 'wayland']);
  });
});
