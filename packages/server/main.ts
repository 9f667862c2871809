// The composition root of the control plane: joins listener, database, rules and routes.

import { readFile } from 'node:fs/promises';
import { Refusal } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { openapiDocument } from '@cubicle/contract/openapi.ts';
import { routes } from '@cubicle/contract/routes.ts';
import { Account } from './app/account.ts';
import { ApiKeys } from './app/api-keys.ts';
import { RecentAuthorities } from './app/authority-memory.ts';
import { Gatekeeper } from './app/authority.ts';
import { Budget } from './app/budget.ts';
import { BuildFollower } from './app/build-follower.ts';
import { BuildKeeper } from './app/build-keeper.ts';
import { BuildOrders } from './app/build-orders.ts';
import { BuildSecrets } from './app/build-secrets.ts';
import type { StreamTimes } from './app/build-stream.ts';
import { BuildStreams, renewStreamsMs } from './app/build-streams.ts';
import { Builds } from './app/builds.ts';
import { Catalog } from './app/catalog.ts';
import { ComputerChanges } from './app/computer-changes.ts';
import { Computers } from './app/computers.ts';
import { Credentials } from './app/credentials.ts';
import { Desktop } from './app/desktop.ts';
import { GuestCalls } from './app/guest-calls.ts';
import { type Inventory, recordedInventory } from './app/inventory.ts';
import { renewMs } from './app/leases.ts';
import { Lifecycle } from './app/lifecycle.ts';
import { Operations } from './app/operations.ts';
import { Reconciler } from './app/reconcile.ts';
import { KeyUses } from './app/key-uses.ts';
import { type MadeAccount, Operator } from './app/operator.ts';
import { SecretBindings } from './app/secret-bindings.ts';
import { SecretDelivery } from './app/secret-delivery.ts';
import { SocketCalls } from './app/socket-calls.ts';
import { reviewMs, Sockets } from './app/sockets.ts';
import { SystemBuilds } from './app/system-builds.ts';
import { TemplateChoice } from './app/template-choice.ts';
import { Templates } from './app/templates.ts';
import { StoredSecrets } from './app/stored-secrets.ts';
import { Vault } from './app/vault.ts';
import { Webhooks } from './app/webhooks.ts';
import { Workspaces } from './app/workspaces.ts';
import { trimRevocationEvidence } from './db/api-keys.ts';
import { authorityOfKey, keyLookup } from './db/authority.ts';
import { trimVoidComputers } from './db/computers.ts';
import { budgetLeaser, forgetFullBudgets, giveBackBudget } from './db/budgets.ts';
import { Database } from './db/database.ts';
import type { HostRow } from './db/hosts.ts';
import { trimKeys } from './db/idempotency.ts';
import { migrate } from './db/migrate.ts';
import { listenForNews } from './db/news.ts';
import { trimOperations } from './db/operations.ts';
import { serviceKey } from './db/service-keys.ts';
import { socketGrants } from './db/socket-grants.ts';
import { keepFirstKey, refreshFirstKey } from './first-key.ts';
import { Housekeeping } from './housekeeping.ts';
import { type BodyTimes, bodyTimes } from './http/body.ts';
import { Door } from './http/door.ts';
import { Listener } from './http/listener.ts';
import { HttpMetrics } from './http/metrics.ts';
import { Pages } from './http/pages.ts';
import { Upgrades } from './http/upgrades.ts';
import { DocumentReader } from './documents/reader.ts';
import { Fleet } from './hosts/fleet.ts';
import { localToken } from './hosts/token.ts';
import { Keyring } from './keyring.ts';
import { makeLog } from './log.ts';
import { desktopPages } from './pages/desktop.ts';
import { referencePage } from './pages/reference.ts';
import { openDatabase } from './store.ts';
import { accountHandlers } from './routes/account.ts';
import { apiKeyHandlers } from './routes/api-keys.ts';
import { buildHandlers } from './routes/builds.ts';
import { computerHandlers } from './routes/computers.ts';
import { computerSecretHandlers } from './routes/computer-secrets.ts';
import { desktopHandlers } from './routes/desktop.ts';
import { execHandlers } from './routes/exec.ts';
import { fileHandlers } from './routes/files.ts';
import { joinHandlers } from './routes/handler.ts';
import { operationHandlers } from './routes/operations.ts';
import { socketHandlers } from './routes/sockets.ts';
import { secretHandlers } from './routes/secrets.ts';
import { signalHandlers } from './routes/signals.ts';
import { sizeHandlers } from './routes/sizes.ts';
import { templateHandlers } from './routes/templates.ts';
import { webhookHandlers } from './routes/webhooks.ts';
import { workspaceHandlers } from './routes/workspaces.ts';
import { baseUrl, type Settings } from './settings.ts';
import { AddressCheck } from './webhooks/address.ts';
import type { Lookup } from './webhooks/names.ts';
import { WebhookWorkers } from './webhooks/workers.ts';

export interface RunningServer {
  readonly baseUrl: string;
  /** Present on the start that made the first account. */
  readonly firstAccount: MadeAccount | undefined;
  /** Whether the data folder holds the first key, of this start or an earlier one. */
  readonly firstKeyKept: boolean;
  /** Makes a host known, with what it has for computers. */
  registerHost(host: HostRow): Promise<void>;
  /** Drains, settles and lets go of everything. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** Progress for a person. */
  readonly say?: (line: string) => void;
  /** The service cannot go on. */
  readonly onFailure?: (error: Error) => void;
  readonly inventory?: Inventory;
  readonly bodyTimes?: BodyTimes;
  readonly drainMs?: number;
  readonly buildStreams?: Partial<StreamTimes>;
  readonly webhooks?: {
    /** The clock that deliveries and subscriptions go by. */
    readonly date?: () => Date;
    readonly lookUp?: Lookup;
    /** False: nothing is read from hosts and nothing delivered by this process. */
    readonly work?: boolean;
  };
}

export async function startServer(
  settings: Settings,
  options: ServerOptions = {},
): Promise<RunningServer> {
  const { say = () => {}, drainMs = 25_000 } = options;
  const log = makeLog(settings.log);
  /** Undone in reverse order, at stop or when starting fails half way. */
  const undo: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };

  try {
    const metrics = new HttpMetrics();
    let alive = async () => false;
    let lookAtDesktop = async (_computer: string, _token: string): Promise<void> => {
      throw new Refusal('not_ready');
    };
    const pages = new Pages({
      pages: {
        metrics: { contentType: metrics.contentType, content: () => metrics.text() },
        'openapi.json': {
          contentType: 'application/json; charset=utf-8',
          content: () => `${JSON.stringify(openapiDocument(), null, 2)}\n`,
        },
        docs: { contentType: 'text/html; charset=utf-8', content: referencePage },
        ...desktopPages,
      },
      ready: async () => listener.ready && (await alive()),
      lookAtDesktop: (computer, token) => lookAtDesktop(computer, token),
    });
    const listener: Listener = new Listener({ pages, metrics, log });
    // Listening first: health can be asked while the database starts, and a taken port is told at once.
    const { port } = await listener.listen(settings.host, settings.port);
    undo.push(() => listener.drain(0));
    const url = baseUrl(settings, port);

    const store = await openDatabase(settings, 'service', say, (error) => {
      log.error({ err: error }, 'the database ended');
      options.onFailure?.(error);
    });
    undo.push(() => store.close());
    await migrate(store.connection, say);
    const database = new Database(store.connection);
    undo.push(() => database.close());
    metrics.watchDatabase(database);
    alive = () => database.alive();

    const firstAccount = await new Operator(database).createFirstAccount(
      { name: 'First account', plan: 'swarm', owner: 'owner@localhost' },
      ({ account, key }) =>
        keepFirstKey(settings.dataDir, { base_url: url, account_id: account.id, key: key.raw }),
    );
    const firstKeyKept = await refreshFirstKey(settings.dataDir, url);

    const keyring = await Keyring.open(settings.keyring);
    const vault = new Vault(database, keyring);
    const isOurs = await vault.confirm().then(
      () => true,
      (error: unknown) => {
        log.error({ err: error }, `${settings.keyring} is not the keyring of this service`);
        return false;
      },
    );

    const memory = new RecentAuthorities();
    const origin = new URL(url).origin;
    const credentials = new Credentials(await serviceKey(database, 'credentials'), origin);
    const sockets = new Sockets(credentials, socketGrants(database));
    const fleet = new Fleet(database, localToken);
    const { date = () => new Date(), lookUp, work = true } = options.webhooks ?? {};
    const check = new AddressCheck({ opened: settings.webhookAllow, ...(lookUp && { lookUp }) });
    const workers = new WebhookWorkers({
      database,
      fleet,
      check,
      keyring: isOurs ? keyring : undefined,
      authority: settings.webhookCa && (await readFile(settings.webhookCa, 'utf8')),
      waits: settings.webhookWaits,
      date,
      log: (problem) => log.warn({ err: problem }, 'webhooks'),
      count: (outcome, seconds) => metrics.attempted(outcome, seconds),
    });
    let streams: BuildStreams | undefined;
    const news = listenForNews(database.connection, {
      changed: (kind, id) => {
        if (kind === 'account' || kind === 'user' || kind === 'key') memory.forget(kind, id);
        else if (kind !== 'computer') memory.forgetAll();
        sockets.changed(kind, id);
        streams?.changed(kind, id);
      },
      webhooks: (changed) => workers.heard(changed),
      builds: (moved) => streams?.moved(moved),
      missed: () => {
        memory.forgetAll();
        void sockets.review();
        streams?.missed();
        workers.heard('');
      },
    });
    undo.push(() => news.close());
    memory.trustWhile(() => news.fresh());

    const gatekeeper = new Gatekeeper(
      keyLookup(database, limits.revocationEvidenceDays),
      (keyId) => authorityOfKey(database, keyId),
      memory,
    );
    const buildStreams = new BuildStreams({ database, gatekeeper, times: options.buildStreams });
    streams = buildStreams;
    const uses = new KeyUses(database);
    const budget = new Budget({
      lease: budgetLeaser(database),
      giveBack: (returned) => giveBackBudget(database, returned),
    });
    undo.push(async () => {
      await Promise.allSettled([uses.write(), budget.settle(true)]);
    });

    const housekeeping = new Housekeeping(log);
    undo.push(() => housekeeping.stop());
    housekeeping.every(500, 'giving back budget', () => budget.settle());
    housekeeping.every(5_000, 'noting key uses', () => uses.write());
    housekeeping.every(60_000, 'forgetting full budgets', () => forgetFullBudgets(database));
    housekeeping.every(60_000, 'trimming revocation evidence', () =>
      trimRevocationEvidence(database, limits.revocationEvidence, limits.revocationEvidenceDays),
    );

    const inventory = options.inventory ?? recordedInventory(database);
    const delivery = new SecretDelivery(database, vault, fleet);
    const lifecycle = new Lifecycle(database, fleet, delivery);
    const computers = new Computers(database, fleet, credentials);
    const reader = new DocumentReader();
    undo.push(() => reader.close());
    const orders = new BuildOrders(database, fleet);
    const follower = new BuildFollower(database, fleet, (problem) =>
      log.warn({ err: problem }, 'following builds'),
    );
    undo.push(() => follower.stop());
    const keeper = new BuildKeeper(database, fleet);
    housekeeping.every(renewMs, 'holding builds', () => follower.renew());
    housekeeping.every(1_000, 'taking up builds', () => follower.takeUp());
    housekeeping.every(2_000, 'keeping builds', () => keeper.run());
    housekeeping.every(60_000, 'trimming builds', () => keeper.trim());
    housekeeping.every(renewStreamsMs, 'holding build streams', () => buildStreams.renew());
    const secrets = new BuildSecrets(database, vault);
    const builds = new Builds({ database, fleet, reader, secrets, orders, follower });
    const systemBuilds = new SystemBuilds(database, orders, follower);
    housekeeping.every(60_000, 'renewing the service’s images', () => systemBuilds.renew());
    const choice = new TemplateChoice(database, fleet, systemBuilds);
    const changes = new ComputerChanges(lifecycle, computers, fleet, choice);
    const guest = new GuestCalls(computers, changes, fleet);
    const calls = new SocketCalls(fleet);
    lookAtDesktop = async (computerId, token) =>
      calls.look(await sockets.admit({ computerId, kind: 'screen', token }));
    const reconciler = new Reconciler(database, fleet);
    housekeeping.every(renewMs, 'holding operations', () => lifecycle.renew());
    housekeeping.every(reviewMs, 'reviewing sockets', () => sockets.review());
    housekeeping.every(1_000, 'taking up operations', () => lifecycle.takeUp());
    housekeeping.every(2_000, 'reconciling', () => reconciler.run());
    housekeeping.every(1_000, 'delivering replaced secrets', () => delivery.redeliver());
    housekeeping.every(60_000, 'trimming operations', () => trimOperations(database));
    housekeeping.every(60_000, 'forgetting computers that never were', () =>
      trimVoidComputers(database),
    );
    housekeeping.every(60_000, 'trimming idempotency keys', () => trimKeys(database));
    if (work) {
      housekeeping.every(10_000, 'trimming deliveries', () => workers.trim());
      undo.push(() => workers.stop());
      workers.start();
    }

    const entries = joinHandlers(routes, {
      ...accountHandlers(new Account(database, inventory)),
      ...workspaceHandlers(new Workspaces(database, gatekeeper, inventory)),
      ...apiKeyHandlers(new ApiKeys(database, gatekeeper, uses)),
      ...secretHandlers(new StoredSecrets(database, vault, fleet)),
      ...sizeHandlers(new Catalog(database)),
      ...templateHandlers(new Templates(database, fleet, reader), url),
      ...buildHandlers(builds, buildStreams),
      ...computerHandlers(computers, changes),
      ...computerSecretHandlers(new SecretBindings(database, computers)),
      ...execHandlers(guest),
      ...desktopHandlers(new Desktop(computers, guest)),
      ...signalHandlers(guest),
      ...fileHandlers(guest),
      ...socketHandlers(),
      ...operationHandlers(new Operations(database, lifecycle)),
      ...webhookHandlers(
        // News of a change come to every process, to this one before its caller hears of it.
        new Webhooks({ database, vault, check, date, changed: (id) => workers.heard(id) }),
      ),
    });
    undo.push(() => listener.drain(drainMs));
    undo.push(async () => sockets.stop());
    undo.push(async () => buildStreams.stop());
    listener.open(
      new Door({
        entries,
        database,
        gatekeeper,
        budget,
        uses,
        bodyTimes: options.bodyTimes ?? bodyTimes,
      }),
      new Upgrades({ sockets, calls, metrics, log }),
    );
    log.info({ base_url: url }, 'serving');
    const registerHost = (host: HostRow) => fleet.register(host);
    return { baseUrl: url, firstAccount, firstKeyKept, registerHost, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
