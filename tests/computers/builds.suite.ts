// A template of one's own, from the document to a computer: checked, built with a secret and watched,
// published, and launched.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { BuildEvents } from '../support/build-events.ts';
import { ended } from '../support/builds.ts';
import { helloScript, isMirrorAway, noMirror } from '../support/mirror.ts';
import type { ComputerGround } from './ground.ts';

const token = 'a-token-that-nobody-else-sees';

export function builds(ground: () => ComputerGround): void {
  test('Part 4 Builds 4, Part 4 Builds 6, Part 4 Builds 10, Part 6.3: a document is checked, built, watched, published and launched', async (t) => {
    const { as, service } = ground();
    const { account_id, key } = service.firstKey();
    const secret = (await as.post('/secrets', { name: 'build token', value: token })).body;
    const documentWith = (hello: object) =>
      stringify({
        apiVersion: 'cubicle/v1',
        kind: 'Template',
        metadata: { namespace: account_id, name: 'own', version: '1.0.0' },
        spec: {
          label: 'One of our own',
          os: 'linux',
          from: 'system/base',
          cpu: 1,
          ram_mb: 1_024,
          disk_gb: 12,
          env: { GREETING: 'hello from the template' },
          secrets: [{ id: secret.id, as: 'TOKEN' }],
          build: [
            hello,
            { mkdir: { path: '/srv/own', owner: 'user' } },
            { file: { path: '/srv/own/note', content: 'written by a step\n', mode: '0600' } },
            { env: { STEP: 'later steps' } },
            { run: 'printf %s "$STEP" > /srv/step; printf %s "$TOKEN" | wc -c > /srv/length' },
          ],
        },
      });
    let document = documentWith({ apt: ['hello'] });
    const checked = await as.send('POST', '/templates/validate', { raw: document });
    assert.equal(checked.body.valid, true, checked.text);
    const watched = async () => {
      const begun = await as.send('POST', '/builds', { raw: document });
      assert.equal(begun.status, 202, begun.text);
      return BuildEvents.open(service, key, begun.body.id).ended();
    };
    let events = await watched();
    if (isMirrorAway(events.at(-1)?.data.error)) {
      t.diagnostic(noMirror);
      document = documentWith({ run: helloScript });
      events = await watched();
    }
    const last = events.at(-1)?.data;
    assert.deepEqual([events.at(-1)?.type, last.status], ['done', 'succeeded'], last.error);
    const phases = new Set(events.map(({ data }) => data.phase));
    assert.ok(phases.has('building') && phases.has('published'), [...phases].join(' '));

    const published = await as.send('POST', '/templates', { raw: document });
    assert.equal(published.status, 201, published.text);
    const { ref } = published.body;
    const made = await as.post('/computers', { template: ref });
    assert.equal(made.status, 201, made.text);
    const { id: computer, template, cpu, ram_mb, disk_gb } = made.body;
    assert.deepEqual([template, cpu, ram_mb, disk_gb], [ref, 1, 1_024, 12]);
    const run = (command: string) => ground().run(computer, command);
    assert.equal(await run('hello'), 'Hello, world!');
    assert.equal(
      await run('cat /srv/own/note; stat -c %a:%U /srv/own/note'),
      'written by a step\n600:root',
    );
    assert.equal(await run('cat /srv/step'), 'later steps');
    assert.equal(await run('cat /srv/length'), String(token.length));
    assert.equal(await run('echo $GREETING'), 'hello from the template');
    assert.equal(await run('echo "<$TOKEN>"'), '<>', 'the secret was the build’s alone');
    const found = await run(
      `grep -rslF ${token.slice(0, 12)}'${token.slice(12)}' /srv /etc /var/log /root /home /tmp || true`,
    );
    assert.equal(found, '', 'the value is nowhere on the disk');
    await ground().desktopReady(computer);

    const again = await as.send('POST', '/builds', { raw: document });
    assert.equal((await ended(as, again.body.id)).phase, 'reused');
    assert.equal((await as.delete(`/computers/${computer}`)).status, 200);
  });
}
