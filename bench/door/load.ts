// The load: a fixed number of connections, each with one request under way, for a fixed time.

import { connect, type Socket } from 'node:net';
import type { Target } from './fill.ts';

export interface Load {
  url: string;
  targets: Target[];
  connections: number;
  ms: number;
}

export interface Measured {
  perSecond: number;
  p50: number;
  p99: number;
  /** Answers that were not 200. */
  refused: number;
}

process.on('message', (load: Load) => {
  void measure(load).then((measured) => process.send?.(measured));
});

async function measure({ url, targets, connections, ms }: Load): Promise<Measured> {
  const { hostname, port, pathname } = new URL(url);
  const requests = targets.map(({ key, workspace }) =>
    Buffer.from(
      `GET ${pathname}/workspaces/${workspace} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\nAccept: application/json\r\n\r\n`,
    ),
  );
  const times: number[] = [];
  const startedAt = performance.now();
  const endAt = startedAt + ms;
  const refusals = await Promise.all(
    Array.from({ length: connections }, (_, n) => {
      let next = Math.floor((n * requests.length) / connections);
      return drive(connect(Number(port), hostname), endAt, times, () => {
        next = (next + 1) % requests.length;
        return requests[next] as Buffer;
      });
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const refused = refusals.reduce((sum, bad) => sum + bad, 0);
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? 0;
  return { perSecond: times.length / seconds, p50: at(0.5), p99: at(0.99), refused };
}

/** Answers how many of its answers were not 200. */
function drive(
  socket: Socket,
  endAt: number,
  times: number[],
  nextRequest: () => Buffer,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    let sentAt = 0;
    let refused = 0;
    function go(): void {
      sentAt = performance.now();
      if (sentAt >= endAt) {
        socket.destroy();
        resolve(refused);
        return;
      }
      socket.write(nextRequest());
    }
    socket.setNoDelay(true);
    socket.setEncoding('latin1');
    socket.on('error', reject).on('connect', go);
    socket.on('data', (chunk: string) => {
      text += chunk;
      const head = text.indexOf('\r\n\r\n');
      if (head === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
      if (text.length < head + 4 + length) return;
      if (!text.startsWith('HTTP/1.1 200')) refused += 1;
      text = '';
      times.push(performance.now() - sentAt);
      go();
    });
  });
}
