// The service as its users run it: a process of its own, and the operator's command beside it.
// A Ground owns the processes and folders of a test and ends whatever the test left.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from './client.ts';
import { unhung, until } from './until.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const main = join(root, 'packages/cli/main.ts');
const command = join(root, 'packages/cli/cubicle.mjs');

export type Environment = Readonly<Record<string, string>>;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FirstKey {
  readonly base_url: string;
  readonly account_id: string;
  readonly key: string;
}

/** Nothing of the caller's own settings reaches a service under test. */
function environment(settings: Environment): Environment {
  const { PATH = '', HOME = '/' } = process.env;
  return {
    PATH,
    HOME,
    CUBICLE_LOG: 'silent',
    CUBICLE_PORT: '0',
    CUBICLE_ENGINE: 'none',
    ...settings,
  };
}

class Run {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly #read = { stdout: '', stderr: '' };

  constructor(args: readonly string[], settings: Environment) {
    this.child = spawn(process.execPath, args, {
      cwd: root,
      env: environment(settings),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const name of ['stdout', 'stderr'] as const) {
      this.child[name]?.setEncoding('utf8').on('data', (text: string) => {
        this.#read[name] += text;
      });
    }
    this.ended = once(this.child, 'close').then(([code]) => ({ code, ...this.#read }));
  }

  get stdout(): string {
    return this.#read.stdout;
  }

  get stderr(): string {
    return this.#read.stderr;
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

export class ServiceProcess extends Run {
  readonly dataDir: string;
  #baseUrl = '';

  constructor(dataDir: string, settings: Environment) {
    super([main, 'start'], { CUBICLE_DATA: dataDir, ...settings });
    this.dataDir = dataDir;
  }

  /** Returns once /healthz is 200, and fails when the process ends instead. */
  async ready(): Promise<this> {
    this.#baseUrl = await until('the service tells its address', () =>
      this.running ? /^Cubicle is ready at (\S+)$/m.exec(this.stdout)?.[1] : '',
    );
    if (this.#baseUrl === '') assert.fail(`the service ended: ${(await this.ended).stderr}`);
    await until('the service is healthy', async () => (await this.health()).status === 200);
    return this;
  }

  get baseUrl(): string {
    assert.notEqual(this.#baseUrl, '', 'the service is not ready yet');
    return this.#baseUrl;
  }

  get origin(): string {
    return new URL(this.baseUrl).origin;
  }

  as(key?: string): Client {
    return new Client(this.baseUrl, key);
  }

  health = () => this.as().get(`${this.origin}/healthz`);

  firstKey(): FirstKey {
    return JSON.parse(readFileSync(join(this.dataDir, 'first-key.json'), 'utf8'));
  }

  /** The service's own process alone; its database outlives a SIGKILL. */
  kill(name: NodeJS.Signals): Promise<Ended> {
    this.child.kill(name);
    return this.ended;
  }

  /** In order, as an operator does it. */
  async stop(): Promise<void> {
    const { code, stderr } = await this.kill('SIGTERM');
    assert.equal(code, 0, stderr);
  }
}

const grounds = new Set<Ground>();
// A test file that is ended early leaves nothing either.
process.on('exit', () => {
  for (const ground of grounds) ground.raze();
});
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // Somebody else who has more to clear up ends the process when that is done.
    if (process.listenerCount(name) === 1) process.exit(1);
  });
}

export class Ground {
  readonly #runs: Run[] = [];
  readonly #folders: string[] = [];

  constructor() {
    grounds.add(this);
  }

  /** One that ends with its test. */
  static of(t: TestContext): Ground {
    const ground = new Ground();
    t.after(() => ground.clear());
    return ground;
  }

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'cubicle-e2e-'));
    this.#folders.push(folder);
    return folder;
  }

  /** Starts the service and does not wait for it. */
  launch(dataDir: string, settings: Environment = {}): ServiceProcess {
    const service = new ServiceProcess(dataDir, settings);
    this.#runs.push(service);
    return service;
  }

  async start(dataDir: string, settings: Environment = {}): Promise<ServiceProcess> {
    return this.launch(dataDir, settings).ready();
  }

  /** The operator's command, through the file that `npm` links as `cubicle`. */
  cubicle(args: readonly string[], settings: Environment): Promise<Ended> {
    const run = new Run([command, ...args], settings);
    this.#runs.push(run);
    return run.ended;
  }

  /** Ends every process and folder; fails when a database server had outlived its owner. */
  async clear(): Promise<void> {
    for (const run of this.#runs.filter(({ running }) => running)) {
      run.child.kill('SIGTERM');
      await unhung('ending a service', run.ended).catch(() => run.child.kill('SIGKILL'));
    }
    const orphans = this.#folders.flatMap(databaseProcesses);
    for (const pid of orphans) signal(pid, 'SIGKILL');
    for (const folder of this.#folders) {
      await until('the database is gone', () => databaseProcesses(folder).length === 0);
      await rm(folder, { recursive: true, force: true });
    }
    grounds.delete(this);
    assert.deepEqual(orphans, [], 'database processes were left');
  }

  raze(): void {
    for (const { child } of this.#runs) child.kill('SIGKILL');
    for (const pid of this.#folders.flatMap(databaseProcesses)) signal(pid, 'SIGKILL');
    const patiently = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 };
    for (const folder of this.#folders) rmSync(folder, patiently);
  }
}

/** Every process that works in a folder of the data folder, or names one in its arguments. */
export function databaseProcesses(dataDir: string): number[] {
  const places = new Set([dataDir, ...foldersIn(dataDir)].map(place));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && +name !== process.pid);
  return pids.map(Number).filter((pid) => {
    try {
      // By inode: the server sees its folder in a mount namespace of its own, under another name.
      if (places.has(place(`/proc/${pid}/cwd`))) return true;
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir);
    } catch {
      return false;
    }
  });
}

/** The pid of the database server itself. */
export function postmaster(dataDir: string): number {
  return Number.parseInt(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10);
}

function foldersIn(dataDir: string): string[] {
  try {
    const entries = readdirSync(dataDir, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(dataDir, name));
  } catch {
    return [];
  }
}

function place(path: string): string {
  const { dev, ino } = statSync(path, { throwIfNoEntry: false }) ?? { dev: 0, ino: path };
  return `${dev}:${ino}`;
}

/** One that ended by itself meanwhile is left alone. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
