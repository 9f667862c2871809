import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { newSecret, secretText, signatures } from '../../packages/server/webhooks/signature.ts';

test('the receiver in the guide accepts what is signed, and nothing else', async () => {
  const guide = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
  const code = /```ts\n(.*?)```/s.exec(guide)?.[1] ?? '';
  const library = import.meta.resolve('standardwebhooks');
  const script = stripTypeScriptTypes(code).replace(`'standardwebhooks'`, `'${library}'`);
  const secret = newSecret();
  process.env['WEBHOOK_SECRET'] = secretText(secret);
  const url = `data:text/javascript,${encodeURIComponent(script)}`;
  const { server } = (await import(url)) as { server: Server };
  try {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const send = async (body: string, signed: string) => {
      const timestamp = Math.floor(Date.now() / 1_000);
      const headers = {
        'webhook-id': 'whd-0123456789abcdef',
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatures([secret], 'whd-0123456789abcdef', timestamp, signed),
      };
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers });
      return answer.status;
    };
    const event = '{"type":"computer.stopped","computer":"vm-0123456789ab"}';
    assert.equal(await send(event, event), 204);
    assert.equal(await send(event, `${event} `), 401);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
