// The listening connection: hears at once when an authority changes in any process, and when webhooks have
// something to do, and when a build moves.
//
// A heartbeat runs over the same connection. PostgreSQL hands out notifications before it answers the
// next statement, so an answered heartbeat proves that everything committed before it was sent has been
// heard. What a process remembers is trusted only while such a proof is fresh: no listener, no memory.

import pg from 'pg';
import { type ConnectionOptions, orGiveUp } from './database.ts';

const beatEveryMs = 200;
/** A change is obeyed within a second everywhere; half of that is left for everything else. */
const proofHoldsMs = 500;

export interface News {
  /** True while everything that changed up to half a second ago has certainly been heard. */
  fresh(): boolean;
  close(): Promise<void>;
}

export interface NewsReader {
  /** `kind:id`, as the trigger announce_authority() writes it. */
  changed(kind: string, id: string): void;
  /** What `cubicle_webhooks` tells: new deliveries, or the id of a subscription that changed. */
  webhooks(changed: string): void;
  /** The id of a build that moved. */
  builds(moved: string): void;
  /** Something may have been missed. */
  missed(): void;
}

export function listenForNews(connection: ConnectionOptions, reader: NewsReader): News {
  let provenAt = Number.NEGATIVE_INFINITY;
  let closed = false;
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function beat(current: pg.Client): Promise<void> {
    const sentAt = performance.now();
    await current.query('SELECT 1');
    provenAt = sentAt;
  }

  async function listen(): Promise<void> {
    const current = new pg.Client({
      ...connection,
      application_name: 'cubicle news',
      connectionTimeoutMillis: 5_000,
    });
    client = current;
    const lost = new Promise<never>((_, reject) => {
      current.on('error', reject);
      current.on('end', () => reject(new Error('the listening connection ended')));
    });
    lost.catch(() => {});
    try {
      current.on('notification', ({ channel, payload }) => {
        if (channel === 'cubicle_webhooks') return reader.webhooks(payload ?? '');
        if (channel === 'cubicle_builds') return reader.builds(payload ?? '');
        const [kind = '', id = ''] = (payload ?? '').split(':');
        return reader.changed(kind, id);
      });
      await Promise.race([current.connect(), lost]);
      await current.query(
        'LISTEN cubicle_authority; LISTEN cubicle_webhooks; LISTEN cubicle_builds',
      );
      reader.missed();
      while (!closed) {
        await Promise.race([beat(current), lost]);
        await pause(beatEveryMs);
      }
    } finally {
      provenAt = Number.NEGATIVE_INFINITY;
      reader.missed();
      await current.end().catch(() => {});
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
      timer.unref();
    });
  }

  async function keepListening(): Promise<void> {
    while (!closed) {
      await listen().catch(() => {});
      if (!closed) await pause(beatEveryMs);
    }
  }
  void keepListening();

  return {
    fresh: () => performance.now() - provenAt < proofHoldsMs,
    async close() {
      closed = true;
      clearTimeout(timer);
      if (client !== undefined) await orGiveUp(client.end().catch(() => {}));
    },
  };
}
