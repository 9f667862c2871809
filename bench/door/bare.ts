// The bare server of the comparison: node:http answering one fixed response.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

process.on('message', ({ headers, body }: { headers: [string, string][]; body: string }) => {
  // Node writes these itself.
  const own = new Set(['connection', 'date', 'keep-alive']);
  const fixed = Object.fromEntries(headers.filter(([name]) => !own.has(name)));
  const server = createServer((_request, response) => {
    response.writeHead(200, fixed);
    response.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
