// What webhooks are measured in: an embedded PostgreSQL, a host that tells what the bench makes up, the
// service's own reader and sender, and receivers in another process.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Journal } from '../../packages/host/events/journal.ts';
import { Operator } from '../../packages/server/app/operator.ts';
import { newId } from '../../packages/server/app/secrets.ts';
import { insertComputer } from '../../packages/server/db/computers.ts';
import { Database } from '../../packages/server/db/database.ts';
import { migrate } from '../../packages/server/db/migrate.ts';
import { listenForNews } from '../../packages/server/db/news.ts';
import { aboutWebhook } from '../../packages/server/db/sealed-values.ts';
import { insertWebhook } from '../../packages/server/db/webhooks.ts';
import { Fleet } from '../../packages/server/hosts/fleet.ts';
import { Keyring } from '../../packages/server/keyring.ts';
import { openEmbeddedPostgres } from '../../packages/server/postgres/embedded.ts';
import { AddressCheck } from '../../packages/server/webhooks/address.ts';
import { readNetwork } from '../../packages/server/webhooks/networks.ts';
import { usualWaits } from '../../packages/server/webhooks/schedule.ts';
import { newSecret } from '../../packages/server/webhooks/signature.ts';
import { WebhookWorkers } from '../../packages/server/webhooks/workers.ts';
import { Authority } from '../../tests/support/certificate.ts';
import type { Ask, Heard } from './receivers.ts';

const waitMost = 10_000;

export interface Subscription {
  readonly id: string;
  readonly computer: string;
  readonly url: string;
  readonly secret: Buffer;
}

export class World {
  readonly database: Database;
  readonly subscriptions: readonly Subscription[];
  readonly authority: string;
  readonly #journal: Journal;
  readonly #receivers: ChildProcess;
  readonly #undo: (() => Promise<void>)[];
  #told = 0;

  private constructor(parts: {
    database: Database;
    subscriptions: readonly Subscription[];
    authority: string;
    journal: Journal;
    receivers: ChildProcess;
    undo: (() => Promise<void>)[];
  }) {
    this.database = parts.database;
    this.subscriptions = parts.subscriptions;
    this.authority = parts.authority;
    this.#journal = parts.journal;
    this.#receivers = parts.receivers;
    this.#undo = parts.undo;
  }

  static async open(count: number): Promise<World> {
    const undo: (() => Promise<void>)[] = [];
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-bench-'));
    undo.push(() => rm(folder, { recursive: true, force: true }));
    const postgres = await openEmbeddedPostgres({
      dataDir: folder,
      role: 'service',
      say: () => {},
    });
    undo.push(() => postgres.stop());
    await migrate(postgres.connection);
    const database = new Database(postgres.connection);
    undo.push(() => database.close());

    const receivers = fork(fileURLToPath(new URL('./receivers.ts', import.meta.url)));
    undo.push(async () => void receivers.kill());
    const authority = new Authority();
    const certificate = authority.issue({ names: ['127.0.0.1'] });
    const ports = (await ask(receivers, { kind: 'open', count, certificate })) as number[];

    const journal = new Journal();
    const address = await serveJournal(journal, folder, undo);
    const keyring = await Keyring.open(join(folder, 'keyring'));
    const fleet = new Fleet(database, () => 'token');
    await fleet.register({ id: 'host', address, cpu: 1, ram_mb: 1, disk_gb: 1 });
    const wish = { name: 'Bench', plan: 'swarm', owner: 'bench@example.com' };
    const { account } = await new Operator(database).createAccount(wish);
    const subscriptions: Subscription[] = [];
    for (const port of ports) {
      const [id, computer, secret] = [newId('webhook'), newId('computer'), newSecret()];
      const url = `https://127.0.0.1:${port}/hook`;
      await insertComputer(database, computerOf(computer, account.id));
      const webhook = { ...webhookOf(id, account.id), url, computers: [computer] };
      await insertWebhook(
        database,
        { ...webhook, secret: keyring.seal(secret, aboutWebhook(id)) },
        new Date(),
      );
      subscriptions.push({ id, computer, url, secret });
    }
    const workers = new WebhookWorkers({
      database,
      fleet,
      check: new AddressCheck({
        opened: [readNetwork('127.0.0.0/8')].filter((one) => one !== undefined),
      }),
      keyring,
      authority: authority.cert,
      waits: usualWaits,
      date: () => new Date(),
      log: console.error,
      count: () => {},
    });
    const news = listenForNews(database.connection, {
      changed: () => {},
      missed: () => workers.heard(''),
      webhooks: (changed) => workers.heard(changed),
      builds: () => {},
    });
    undo.push(() => news.close());
    undo.push(() => workers.stop());
    workers.start();
    const { cert } = authority;
    return new World({ database, subscriptions, authority: cert, journal, receivers, undo });
  }

  /** An event of the computer that this subscription hears. */
  tell(n: number): void {
    const { computer } = this.subscriptions[n] as Subscription;
    const [at, cursor] = [new Date(), `0000000000000000:${this.#told}`];
    this.#told += 1;
    const text = eventText(computer, this.#told, cursor, at);
    this.#journal.note({ source: 'daemon', type: 'computer.idle', computer, cursor, at, text });
  }

  async hang(which: number): Promise<void> {
    await ask(this.#receivers, { kind: 'hang', which });
  }

  async clear(): Promise<void> {
    await ask(this.#receivers, { kind: 'clear' });
  }

  async heard(): Promise<Heard> {
    return (await ask(this.#receivers, { kind: 'read' })) as Heard;
  }

  async close(): Promise<void> {
    for (let step = this.#undo.pop(); step !== undefined; step = this.#undo.pop()) await step();
  }
}

/** As a host frames one, with the time at which it happened by the machine's steady clock. */
export function eventText(computer: string, seq: number, cursor: string, at: Date): string {
  const sent = String(process.hrtime.bigint());
  const data = { idle_seconds: 60, sent };
  const type = 'computer.idle';
  return JSON.stringify({
    type,
    at: at.toISOString(),
    computer,
    seq,
    cursor,
    source: 'daemon',
    data,
  });
}

async function ask(child: ChildProcess, question: Ask): Promise<unknown> {
  child.send(question);
  const [told] = (await once(child, 'message')) as [unknown];
  return told;
}

async function serveJournal(
  journal: Journal,
  folder: string,
  undo: (() => Promise<void>)[],
): Promise<string> {
  const gaps = { lost: () => never(), everybody: () => [] };
  const path = join(folder, 'host.sock');
  await writeFile(join(folder, 'token'), 'token');
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://host').searchParams;
    const after = query.get('after') ?? undefined;
    const page = () => journal.page(after, Number(query.get('limit')), gaps);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const waiting =
      page().events.length > 0 ? Promise.resolve() : journal.news(waitMost, gone.signal);
    void waiting.then(() => response.end(JSON.stringify(page())));
  });
  await once(server.listen(path), 'listening');
  undo.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `unix:${path}`;
}

function never(): never {
  throw new Error('the journal lost events: the bench tells too many at once');
}

function computerOf(id: string, account: string): Parameters<typeof insertComputer>[1] {
  const about = {
    name: 'bench',
    template: 'base',
    desktop: null,
    build_source: null,
    build_id: null,
  };
  const shape = { resolution: '1280x800x24', cpu: 1, ram_mb: 512, disk_gb: 10, active: true };
  return { id, account_id: account, workspace_id: null, host_id: 'host', ...about, ...shape };
}

function webhookOf(id: string, account: string) {
  const rest = { description: '', events: [], enabled: true };
  return { id, account_id: account, workspace_id: null, ...rest };
}
