// A service with real computers for a test file: `cubicle start` as a process of its own, with its host
// daemon, its Incus and a data folder of its own. Closing it takes everything away and fails when
// something is left.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostCommand, HostOutcome, HostReport } from '../../packages/contract/host/api.ts';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import type { IncusInstance } from '../../packages/host/engine/incus/instance.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { findDaemon } from '../../packages/host/engine/incus/processes.ts';
import { erase } from '../../packages/host/engine/incus/sweep.ts';
import { endWithTheProcess, removeGround } from '../host/incus-ground.ts';
import type { Answer, Client } from '../support/client.ts';
import { makeDatabase, type TestDatabase } from '../support/database.ts';
import { type Environment, ServiceProcess, signal } from '../support/process.ts';
import { until } from '../support/until.ts';

/** Plenty: what a disk may take is only taken as it is written. */
const diskGb = '1000';

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface ExecWish {
  readonly session?: 'desktop';
  readonly timeout_s?: number;
}

/** What `GET /operations/{id}` tells, as far as tests look. */
export interface Operation {
  readonly id: string;
  readonly kind: string;
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed';
  readonly computer_id: string;
  readonly error: { code: string; message: string } | null;
}

export class ComputerGround {
  readonly dataDir: string;
  readonly place: Place;
  readonly #database: TestDatabase;
  readonly #settings: Environment;
  #service: ServiceProcess | undefined;

  private constructor(dataDir: string, place: Place, kept: TestDatabase, settings: Environment) {
    this.dataDir = dataDir;
    this.place = place;
    this.#database = kept;
    this.#settings = settings;
  }

  /** The image is the one of the cache folder; the first run of all makes it. */
  static async open(settings: Environment = {}): Promise<ComputerGround> {
    const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-computers-'));
    const kept = await makeDatabase();
    const ground = new ComputerGround(dataDir, await placeOf(dataDir), kept, {
      DATABASE_URL: kept.url,
      CUBICLE_ENGINE: 'incus',
      CUBICLE_POOL: '0',
      CUBICLE_DISK_GB: diskGb,
      ...settings,
    });
    endWithTheProcess(ground.place, dataDir, () => ground.#raze());
    try {
      await ground.start();
    } catch (error) {
      await ground.close();
      throw error;
    }
    return ground;
  }

  get service(): ServiceProcess {
    assert.ok(this.#service);
    return this.#service;
  }

  /** With the first key. */
  get as(): Client {
    return this.service.as(this.service.firstKey().key);
  }

  async start(): Promise<void> {
    this.#service = new ServiceProcess(this.dataDir, this.#settings);
    await this.#service.ready();
    assert.doesNotMatch(this.#service.stdout, /Computers cannot run here/);
  }

  async create(wish: object = { size: 'small' }): Promise<{ id: string; operation_id: string }> {
    const answer = await this.as.post('/computers', wish);
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  }

  /** One whose desktop accepts input. */
  async desktop(wish?: object): Promise<string> {
    const { id } = await this.create(wish);
    await this.desktopReady(id);
    return id;
  }

  async desktopReady(id: string): Promise<void> {
    await until('the desktop is ready', async () => (await this.told(id))?.ready);
  }

  async post(path: string): Promise<void> {
    const answer = await this.as.send('POST', path);
    assert.equal(answer.status, 200, answer.text);
  }

  async status(id: string): Promise<string> {
    return (await this.as.get(`/computers/${id}`)).body.status;
  }

  /** As the API answers it; an agent that is not there yet is waited for. */
  async exec(id: string, command: string, wish: ExecWish = {}): Promise<Finished> {
    const { body } = await until('the guest answers', async () => {
      const answer = await this.as.post(`/computers/${id}/exec`, { command, ...wish });
      if (answer.status === 409 && answer.body.reason === 'starting') return undefined;
      return answer;
    });
    assert.equal(body.error, undefined, `${command}: ${body.error}`);
    const text = (b64: string) => Buffer.from(b64, 'base64').toString('utf8');
    return { code: body.exit_code, out: text(body.stdout_b64), err: text(body.stderr_b64) };
  }

  /** What a line of shell prints; it must succeed. */
  async run(id: string, command: string, wish?: ExecWish): Promise<string> {
    const { code, out, err } = await this.exec(id, command, wish);
    assert.equal(code, 0, `${command}: ${out}${err}`);
    return out.trim();
  }

  /** When the guest's first process began: another one after every boot. */
  session(id: string): Promise<string> {
    return this.run(id, `cut -d ' ' -f 22 /proc/1/stat`);
  }

  async write(id: string, path: string, content: Buffer): Promise<Answer> {
    return this.as.send('PUT', fileOf(id, path), { raw: content });
  }

  /** The bytes of a file, or of a range of it. */
  async read(id: string, path: string, range?: string): Promise<Response> {
    const { key } = this.service.firstKey();
    return fetch(this.service.baseUrl + fileOf(id, path), {
      headers: { authorization: `Bearer ${key}`, ...(range !== undefined && { range }) },
    });
  }

  async ended(operation: string): Promise<Operation> {
    return until('the operation is final', async () => {
      const { body } = await this.as.get(`/operations/${operation}`);
      return body.finished_at === null ? undefined : body;
    });
  }

  /** What the host says of its computers, asked without the control plane. */
  async report(): Promise<HostReport> {
    return (await this.#host('GET', '/report')) as HostReport;
  }

  async told(id: string): Promise<HostReport['computers'][number] | undefined> {
    return (await this.report()).computers.find((computer) => computer.id === id);
  }

  async command(id: string, command: HostCommand): Promise<HostOutcome> {
    return (await this.#host('POST', `/computers/${id}/commands`, command)) as HostOutcome;
  }

  async #host(method: string, path: string, json?: unknown): Promise<unknown> {
    const folder = join(this.dataDir, 'host');
    const token = readFileSync(join(folder, 'token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socketPath = join(folder, 'host.sock');
    const request = httpRequest({ socketPath, method, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', reject).on('end', () => resolve(text));
    });
    request.on('error', reject).end(json === undefined ? undefined : JSON.stringify(json));
    return JSON.parse(await promise);
  }

  /** Every instance that Incus itself has, whole or not. */
  async instances(): Promise<IncusInstance[]> {
    const client = new IncusClient({ kind: 'unix', path: this.place.socket });
    try {
      const context = { signal: AbortSignal.timeout(30_000) };
      return await client.get<IncusInstance[]>(context, '/1.0/instances?recursion=1');
    } finally {
      client.close();
    }
  }

  async instanceOf(id: string): Promise<string> {
    const found = (await this.instances()).find((instance) => computerOf(instance) === id);
    assert.ok(found, `Incus has nothing for ${id}`);
    return found.name;
  }

  /** The folders by which the host daemon and the guests speak, one for each instance. */
  linkFolders(): string[] {
    return readdirSync(join(this.dataDir, 'host/links'));
  }

  /** The processes of this service by what they are. Absent ones are waited for. */
  async pid(of: 'server' | 'host' | 'incus'): Promise<number> {
    return until(`there is a process: ${of}`, async () => {
      if (of === 'server') return this.service.child.pid;
      return of === 'incus' ? findDaemon(this.place) : this.#hostDaemons()[0];
    });
  }

  async kill(victim: 'server' | 'host' | 'incus'): Promise<void> {
    const pid = await this.pid(victim);
    signal(pid, 'SIGKILL');
    await until('it is gone', () => !isAlive(pid));
  }

  #hostDaemons(): number[] {
    return processesWith(`CUBICLE_DATA=${this.dataDir}`).filter((pid) =>
      commandLine(pid).endsWith(' host '),
    );
  }

  async #raze(): Promise<void> {
    for (const pid of processesWith(`CUBICLE_DATA=${this.dataDir}`)) signal(pid, 'SIGKILL');
    await erase(this.place);
    await this.#database.drop();
  }

  async close(): Promise<void> {
    try {
      await this.#service?.kill('SIGTERM');
      const left = () => processesWith(`CUBICLE_DATA=${this.dataDir}`);
      await until('its processes have ended', () => left().length === 0).catch(() => {});
      assert.deepEqual(left(), [], 'processes were left');
      // Computers go on running without the service: it is us who end them.
      await erase(this.place);
    } finally {
      await this.#raze();
      await removeGround(this.dataDir, this.place);
    }
  }
}

/** Which computer an instance is; empty for one that waits in the pool. */
export function computerOf({ config }: IncusInstance): string {
  return config['user.cubicle.label.computer'] ?? '';
}

export function fileOf(id: string, path: string): string {
  return `/computers/${id}/files?path=${encodeURIComponent(path)}`;
}

export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Those with this line in their environment: nobody else has our data folder. */
function processesWith(setting: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && +name !== process.pid);
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(setting);
    } catch {
      return false;
    }
  });
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** One that has ended and that nobody has noted counts as gone. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
