/** A data folder for one test: opens servers in it, and fails the test that leaves one behind. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  openEmbeddedPostgres,
} from '../../packages/server/postgres/embedded.ts';

const run = promisify(execFile);
const conditionMs = 60_000;

export const isRoot = process.geteuid?.() === 0;

export interface Holder {
  readonly process: ChildProcess;
  /** What it says once it is open, or could not open. */
  readonly reply: Promise<{ url?: string; error?: string }>;
}

interface HoldOptions {
  wrapper?: string[];
  uid?: number;
  waitMs?: number;
}

export class DataFolder {
  readonly path: string;
  readonly said: string[] = [];
  readonly #undo: (() => Promise<unknown>)[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /** An empty folder. */
  static async make(t: TestContext, mode = 0o700): Promise<DataFolder> {
    const folder = new DataFolder(await mkdtemp(join(tmpdir(), 'cubicle-test-')));
    t.after(() => folder.#clean());
    await chmod(folder.path, mode);
    return folder;
  }

  /** A folder with a cluster: a copy of one that is made once, as initdb takes a second or two. */
  static async makeReady(t: TestContext): Promise<DataFolder> {
    template ??= makeTemplate();
    const folder = await DataFolder.make(t);
    await run('cp', ['-a', join(await template, 'postgres'), folder.path]);
    return folder;
  }

  get cluster(): string {
    return join(this.path, 'postgres');
  }

  async open(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
    const database = await openEmbeddedPostgres({
      dataDir: this.path,
      role: 'service',
      say: (line) => this.said.push(line),
      ...options,
    });
    this.#undo.push(() => database.stop());
    return database;
  }

  /** The same in another process, started by `wrapper` if one is given. */
  hold(
    role: EmbeddedPostgresOptions['role'],
    { wrapper = [], uid, waitMs = 10_000 }: HoldOptions = {},
  ): Holder {
    const script = join(import.meta.dirname, 'hold-open.ts');
    const command = [process.execPath, script, this.path, role, `${waitMs}`];
    const [file = '', ...args] = [...wrapper, ...command];
    const child = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    child.stdin.on('error', () => {});
    const exited = once(child, 'exit');
    this.#undo.push(async () => {
      child.stdin.end();
      await exited;
    });
    const reply = new Promise<string>((resolve) => {
      const lines = createInterface(child.stdout);
      lines.once('line', resolve);
      lines.once('close', () => resolve('{"error":"the holder ended without a word"}'));
    });
    return { process: child, reply: reply.then((line) => JSON.parse(line)) };
  }

  postmaster(): number {
    return Number.parseInt(readFileSync(join(this.cluster, 'postmaster.pid'), 'utf8'), 10);
  }

  /** Every process of a server in this folder, backends included. */
  servers(): number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.map(Number).filter((pid) => this.#worksHere(pid));
  }

  #worksHere(pid: number): boolean {
    try {
      if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== 'postgres') return false;
      const [there, here] = [statSync(`/proc/${pid}/cwd`), statSync(this.cluster)];
      return there.ino === here.ino && there.dev === here.dev;
    } catch {
      return false;
    }
  }

  async #clean(): Promise<void> {
    const results = await Promise.allSettled(this.#undo.toReversed().map((undo) => undo()));
    // The last processes of a server that was killed end by themselves; a leaked server does not.
    await until(() => this.servers().length === 0).catch(() => {});
    const leaked = this.servers();
    for (const pid of leaked) process.kill(pid, 'SIGKILL');
    await until(() => this.servers().length === 0);
    await rm(this.path, { recursive: true, force: true });
    assert.deepEqual(leaked, [], 'server processes are left over');
    for (const result of results) assert.equal(result.status, 'fulfilled');
  }
}

export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

let template: Promise<string> | undefined;
let templatePath: string | undefined;
after(async () => {
  if (templatePath) await rm(templatePath, { recursive: true, force: true });
});

async function makeTemplate(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-test-'));
  templatePath = dataDir;
  const database = await openEmbeddedPostgres({ dataDir, role: 'service', say: () => {} });
  await database.stop();
  return dataDir;
}

/** Waits until the condition holds; one that throws does not hold yet. */
export async function until(condition: () => unknown): Promise<void> {
  const deadline = Date.now() + conditionMs;
  for (;;) {
    try {
      if (await condition()) return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    assert.ok(Date.now() < deadline, `still not true: ${condition.toString()}`);
    await pause(20);
  }
}
