// A service of the bench's own: started, called with its first key, and taken off the machine at the end.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../packages/cli/main.ts', import.meta.url));

/** Asking more often would take the time of those who are asked. */
const pollMs = 20;

/** What no bench should run into. */
const plenty = [
  'rate_units=1000000000',
  'max_computers=5000',
  'vcpu_pool=100000',
  'ram_pool_mb=100000000',
  'disk_pool_gb=1000000',
];

/** The fields that the bench reads of any answer; the tests prove that they are there. */
export interface Body {
  readonly id: string;
  readonly operation_id: string;
  readonly state: string;
  readonly length: number;
  readonly events_url: string;
  readonly terminal_url: string;
  readonly exit_code: number;
  readonly stdout_b64: string;
  readonly stderr_b64: string;
  readonly windows: readonly { title: string; x: number; y: number }[];
}

export interface Answer {
  readonly status: number;
  readonly body: Body;
}

export class BenchService {
  readonly dataDir: string;
  #child: ChildProcess | undefined;
  #url = '';
  #key = '';

  private constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  static async start(settings: Record<string, string>): Promise<BenchService> {
    const service = new BenchService(await mkdtemp(join(tmpdir(), 'cubicle-bench-')));
    try {
      await service.start(settings);
      await service.admin('plan', 'set', 'swarm', ...plenty);
    } catch (error) {
      await service.end();
      throw error;
    }
    return service;
  }

  async start(settings: Record<string, string>): Promise<void> {
    const env = { CUBICLE_DATA: this.dataDir, CUBICLE_PORT: '0', CUBICLE_LOG: 'warn', ...settings };
    const child = spawn(process.execPath, [cli, 'start'], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.on('exit', () => reject(new Error('the service ended')));
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.includes('ready at')) resolve();
      });
    });
    const kept = await readFile(join(this.dataDir, 'first-key.json'), 'utf8');
    const { base_url, key } = JSON.parse(kept) as { base_url: string; key: string };
    this.#url = base_url;
    this.#key = key;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }

  /** Whatever the bench did, nothing of it stays. */
  async end(): Promise<void> {
    await this.stop();
    await this.admin('host', 'purge', '--yes').catch(() => {});
    await rm(this.dataDir, { recursive: true, force: true });
  }

  async admin(...words: string[]): Promise<void> {
    const child = spawn(process.execPath, [cli, 'admin', ...words], {
      env: { ...process.env, CUBICLE_DATA: this.dataDir },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = (await once(child, 'exit')) as [number];
    if (code !== 0) throw new Error(`admin ${words.join(' ')} ended with ${code}`);
  }

  async send(method: string, path: string, json?: unknown): Promise<Answer> {
    const answer = await this.raw(method, path, json === undefined ? null : JSON.stringify(json));
    return { status: answer.status, body: (await answer.json()) as Body };
  }

  raw(method: string, path: string, body: string | Uint8Array<ArrayBuffer> | null = null) {
    const headers = { authorization: `Bearer ${this.#key}` };
    return fetch(`${this.#url}${path}`, { method, headers, body });
  }

  /** As `send`, and anything but success ends the bench. */
  async good(method: string, path: string, json?: unknown): Promise<Body> {
    const { status, body } = await this.send(method, path, json);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** A command of the desktop's session is refused until the desktop accepts input. */
  async desktopUp(id: string): Promise<void> {
    const command = { command: 'true', session: 'desktop' };
    for (;;) {
      const { status } = await this.send('POST', `/computers/${id}/exec`, command);
      if (status === 200) return;
      if (status !== 409) throw new Error(`the desktop’s exec answered ${status}`);
      await pause(pollMs);
    }
  }

  /** What a command of the desktop's session prints. */
  async run(id: string, command: string): Promise<string> {
    const wish = { command, session: 'desktop', timeout_s: 120 };
    const done = await this.good('POST', `/computers/${id}/exec`, wish);
    const text = (b64: string) => Buffer.from(b64, 'base64').toString();
    if (done.exit_code !== 0) throw new Error(`${command}: ${text(done.stderr_b64)}`);
    return text(done.stdout_b64);
  }
}
