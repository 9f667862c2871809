/** Opens the embedded PostgreSQL of a data folder: the way in to everything in this folder. */
import { prepareCluster, prepareDataFolder } from './cluster.ts';
import { connectionTo } from './connect.ts';
import { Ownership } from './ownership.ts';
import { placeSocketFolder } from './socket-folder.ts';

/** A service in the way stays there; a command in the way of a command ends soon. */
const waitMs = { service: 10_000, command: 60_000 };

export interface EmbeddedPostgres {
  /** For `pg`: the host is the folder of the unix socket. */
  readonly connection: { host: string; port: number; user: string; database: string };
  /** The same as a URL, to hand to another process as DATABASE_URL. */
  readonly url: string;
  /** Ends the server and waits until it is gone, if this process owns it. May be called again. */
  stop(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** CUBICLE_DATA; the cluster lives in its folder `postgres`. */
  dataDir: string;
  /** A service owns its server; a command uses the one that a service runs, and owns it else. */
  role: 'service' | 'command';
  /** Progress for a person. */
  say: (line: string) => void;
  /** The server ended while it should run and could not be restarted. */
  onCrash?: (error: Error) => void;
  /** How long to wait for another owner that is in the way. */
  waitMs?: number;
}

export async function openEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { role, say } = options;
  const dataDir = await prepareDataFolder(options.dataDir);
  const cluster = await prepareCluster(dataDir, say);
  const socket = placeSocketFolder(dataDir);
  const ownership = new Ownership(
    { dataDir, cluster, socket },
    {
      role,
      say,
      onCrash: options.onCrash ?? (() => {}),
      waitMs: options.waitMs ?? waitMs[role],
    },
  );
  await ownership.begin();
  const connection = connectionTo(socket.path, 'cubicle');
  return { connection, url: urlOf(connection), stop: () => ownership.end() };
}

/** The host goes in the query: a URL has no other place for a path. */
function urlOf({ host, port, user, database }: EmbeddedPostgres['connection']): string {
  return `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}
