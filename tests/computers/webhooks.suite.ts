// Webhooks of a real computer: what happens in and to it arrives signed at a receiver.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';
import { deliveriesOf, subscribed } from '../support/webhooks.ts';
import type { ComputerGround } from './ground.ts';

export function webhooks(theGround: () => ComputerGround): void {
  let ground: ComputerGround;
  let receiver: Receiver;
  before(async () => {
    ground = theGround();
    receiver = await Receiver.start();
  });
  after(() => receiver?.stop());

  test('Part 6.1 1, Part 6.1 5, Part 2 Webhook: a desktop’s windows, commands and power arrive, and their cursors hold', async () => {
    const { id: webhook, secret } = await subscribed(ground.as, receiver.url);
    const id = await ground.desktop({ size: 'small' });
    const heard = (type: string) =>
      until(type, () => receiver.events(secret).find((e) => e.type === type));
    const started = await heard('computer.started');
    assert.deepEqual([started.computer, started.source], [id, 'daemon']);
    const ready = await heard('computer.ready');
    assert.equal(ready.source, 'guest');
    const run = async (command: string, rest: object = {}) =>
      ground.as.post(`/computers/${id}/exec`, { command, background: true, ...rest });
    const { execution_id } = (await run('exit 7')).body;
    const exited = await heard('process.exited');
    assert.deepEqual([exited.data.execution_id, exited.data.exit_code], [execution_id, 7]);
    await run('xfce4-terminal --disable-server', { session: 'desktop' });
    const opened = await heard('window.opened');
    assert.equal(typeof opened.data.id, 'string');
    await ground.post(`/computers/${id}/stop`);
    const stopped = await heard('computer.stopped');
    const since = encodeURIComponent(exited.cursor);
    const page = (await ground.as.get(`/computers/${id}/signals?since=${since}`)).body;
    assert.deepEqual(page.events.at(-1), stopped);
    await until('all are recorded', async () =>
      (await deliveriesOf(ground.as, webhook)).every(({ state }) => state === 'delivered'),
    );
  });
}
