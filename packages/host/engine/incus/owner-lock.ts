/** Lets one process own a data folder's Incus: a lock that the kernel drops with its holder. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Place } from './place.ts';

const pollMs = 100;

export interface OwnerLock {
  release(): Promise<void>;
}

/** Waits a while for a predecessor that is just ending. */
export async function takeOwnerLock(place: Place, waitMs: number): Promise<OwnerLock> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const server = await bind(place.lock);
    if (server !== undefined) {
      return {
        release: () => new Promise((resolve) => server.close(() => resolve())),
      };
    }
    if (performance.now() > deadline) {
      throw new Error(
        `Another Cubicle host is using the data folder of ${place.folder}; give this one its own CUBICLE_DATA.`,
      );
    }
    await pause(pollMs);
  }
}

async function bind(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  server.listen(name);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return undefined;
    throw error;
  }
  server.unref();
  return server;
}
