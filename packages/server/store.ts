// The database a service or a command works on: the one DATABASE_URL names, or the embedded one.

import type { ConnectionOptions } from './db/database.ts';
import { openEmbeddedPostgres } from './postgres/embedded.ts';
import type { Settings } from './settings.ts';

export interface Store {
  readonly connection: ConnectionOptions;
  /** Stops the embedded server where this process owns it. */
  close(): Promise<void>;
}

export async function openDatabase(
  settings: Settings,
  role: 'service' | 'command',
  say: (line: string) => void,
  onCrash?: (error: Error) => void,
): Promise<Store> {
  if (settings.databaseUrl !== undefined) {
    return { connection: { connectionString: settings.databaseUrl }, close: async () => {} };
  }
  const { dataDir } = settings;
  const embedded = await openEmbeddedPostgres({ dataDir, role, say, ...(onCrash && { onCrash }) });
  return { connection: embedded.connection, close: () => embedded.stop() };
}
