// Receivers of webhooks in a process of their own: HTTPS on loopback, which count what arrives and how long
// it was on its way by the machine's steady clock.

import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from '../../tests/support/certificate.ts';

export type Ask =
  | { readonly kind: 'open'; readonly count: number; readonly certificate: Certificate }
  /** From now on this one never answers; -1: all of them do. */
  | { readonly kind: 'hang'; readonly which: number }
  | { readonly kind: 'clear' }
  | { readonly kind: 'read' };

export interface Heard {
  /** Of each receiver. */
  readonly counts: readonly number[];
  /** Milliseconds of every event that told when it happened. */
  readonly latencies: readonly number[];
}

const servers: Server[] = [];
let counts: number[] = [];
let latencies: number[] = [];
let hanging = -1;

const sentAt = /"sent":"(\d+)"/;

async function open(count: number, certificate: Certificate): Promise<number[]> {
  for (let n = 0; n < count; n += 1) {
    const server = createServer({ ...certificate, keepAliveTimeout: 60_000 });
    server.on('request', (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const sent = sentAt.exec(body)?.[1];
        if (sent !== undefined)
          latencies.push(Number(process.hrtime.bigint() - BigInt(sent)) / 1e6);
        counts[n] = (counts[n] ?? 0) + 1;
        if (n !== hanging) response.end('ok');
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    servers.push(server);
  }
  return servers.map((server) => (server.address() as AddressInfo).port);
}

async function answer(ask: Ask): Promise<unknown> {
  switch (ask.kind) {
    case 'open':
      return open(ask.count, ask.certificate);
    case 'hang':
      hanging = ask.which;
      return 'done';
    case 'clear':
      counts = servers.map(() => 0);
      latencies = [];
      return 'done';
    default:
      return { counts, latencies } satisfies Heard;
  }
}

process.on('message', (ask: Ask) => {
  void answer(ask).then((told) => process.send?.(told));
});
