// A started service for tests: the real server on real sockets with a database of its own, in this process.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type MadeAccount, Operator } from '../../packages/server/app/operator.ts';
import { Database } from '../../packages/server/db/database.ts';
import { type ServerOptions, startServer } from '../../packages/server/main.ts';
import { readSettings } from '../../packages/server/settings.ts';
import { Client } from './client.ts';
import { makeDatabase } from './database.ts';
import type { RunningHost } from '../../packages/host/main.ts';
import { SimulatedHost } from './simulated-host.ts';

export interface TestService {
  readonly baseUrl: string;
  readonly origin: string;
  readonly databaseUrl: string;
  readonly database: Database;
  readonly operator: Operator;
  /** A client with this key, or with none. */
  as(key?: string): Client;
  /** A new account of this plan with its owner's key. */
  account(plan?: string): Promise<MadeAccount & { owner: string; as: Client }>;
  /** A further member of an account, with a key. */
  member(
    accountId: string,
    role: 'viewer' | 'member' | 'owner',
    key?: { workspace?: string; manageKeys?: boolean },
  ): Promise<{ email: string; userId: string; keyId: string; raw: string; as: Client }>;
  /** Another server process's worth of service on the same database. */
  beside(
    settings?: Readonly<Record<string, string>>,
  ): Promise<{ baseUrl: string; as(key?: string): Client; stop(): Promise<void> }>;
  /** Only with `simulated`. */
  readonly host: SimulatedHost;
  /** Makes a host of the test's own known. */
  register(host: RunningHost['row']): Promise<void>;
  stop(): Promise<void>;
}

let people = 0;

export function newEmail(): string {
  people += 1;
  return `person-${process.pid}-${people}@example.com`;
}

export interface TestOptions extends ServerOptions {
  /** With a host on the simulated engine. */
  readonly simulated?: true;
  /** Further settings. */
  readonly settings?: Readonly<Record<string, string>>;
}

export async function startService({
  simulated,
  settings: further = {},
  ...options
}: TestOptions = {}): Promise<TestService> {
  const kept = await makeDatabase();
  const folders: string[] = [];
  const launch = async (other: Readonly<Record<string, string>> = {}) => {
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-service-'));
    folders.push(folder);
    const settings = readSettings(
      {
        CUBICLE_PORT: '0',
        CUBICLE_DATA: folder,
        DATABASE_URL: kept.url,
        // Processes of one service have one keyring.
        CUBICLE_KEYRING: join(folders[0] as string, 'keyring.json'),
        CUBICLE_LOG: 'silent',
        CUBICLE_ENGINE: simulated ? 'simulated' : 'none',
        ...further,
        ...other,
      },
      folder,
    );
    return startServer(settings, { drainMs: 5_000, ...options });
  };
  const server = await launch();
  const host = simulated && (await SimulatedHost.start(folders[0] as string));
  if (host) await server.registerHost(host.row);
  const database = new Database({ connectionString: kept.url }, 4);
  const operator = new Operator(database, options.webhooks?.date);
  const clientOf = (baseUrl: string) => (key?: string) => new Client(baseUrl, key);
  const as = clientOf(server.baseUrl);
  return {
    baseUrl: server.baseUrl,
    origin: new URL(server.baseUrl).origin,
    databaseUrl: kept.url,
    database,
    operator,
    as,
    async account(plan = 'swarm') {
      const owner = newEmail();
      const made = await operator.createAccount({ name: 'Tests', plan, owner });
      return { ...made, owner, as: as(made.key.raw) };
    },
    async member(account, role, key = {}) {
      const email = newEmail();
      const { user } = await operator.addMember({ account, email, role });
      const manageKeys = key.manageKeys ?? false;
      const { id, raw } = await operator.createKey({ account, email, ...key, manageKeys });
      return { email, userId: user.id, keyId: id, raw, as: as(raw) };
    },
    async beside(settings) {
      const other = await launch(settings);
      const { baseUrl } = other;
      return { baseUrl, as: clientOf(baseUrl), stop: () => other.stop() };
    },
    get host() {
      if (host === undefined) throw new Error('this service was started without a host');
      return host;
    },
    register: (row) => server.registerHost(row),
    async stop() {
      await server.stop();
      await host?.stop();
      await database.close();
      await kept.drop();
      for (const folder of folders) await rm(folder, { recursive: true, force: true });
    },
  };
}
