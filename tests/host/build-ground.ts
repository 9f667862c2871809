// A host daemon with a real engine as a process of its own, for builds: it can be killed and started again.
// Closing it takes everything away and fails when something is left.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { IncusClient } from '../../packages/host/engine/incus/client.ts';
import type { IncusInstance } from '../../packages/host/engine/incus/instance.ts';
import { type Place, placeOf } from '../../packages/host/engine/incus/place.ts';
import { findDaemon } from '../../packages/host/engine/incus/processes.ts';
import { erase } from '../../packages/host/engine/incus/sweep.ts';
import { root } from '../support/process.ts';
import { unhung, until } from '../support/until.ts';
import { BuildOrders } from './build-orders.ts';
import { endWithTheProcess, removeGround } from './incus-ground.ts';

const runProgram = promisify(execFile);

export class BuildGround {
  readonly dataDir: string;
  readonly place: Place;
  readonly orders: BuildOrders;
  #daemon: ChildProcess | undefined;
  #said = '';

  private constructor(dataDir: string, place: Place) {
    this.dataDir = dataDir;
    this.place = place;
    this.orders = new BuildOrders(dataDir);
  }

  static async open(): Promise<BuildGround> {
    const dataDir = await mkdtemp(join(tmpdir(), 'cubicle-builds-'));
    const ground = new BuildGround(dataDir, await placeOf(dataDir));
    endWithTheProcess(ground.place, dataDir, async () => {
      ground.#daemon?.kill('SIGKILL');
      await erase(ground.place);
    });
    try {
      await ground.start();
    } catch (error) {
      await ground.close();
      throw error;
    }
    return ground;
  }

  async start(): Promise<void> {
    this.#said = '';
    const daemon = spawn(process.execPath, [join(root, 'packages/cli/main.ts'), 'host'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        CUBICLE_DATA: this.dataDir,
        CUBICLE_ENGINE: 'incus',
        CUBICLE_POOL: '0',
        CUBICLE_DISK_GB: '1000',
      },
    });
    this.#daemon = daemon;
    for (const stream of [daemon.stdout, daemon.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#said += text));
    }
    await until('the host is ready', () => {
      assert.equal(daemon.exitCode, null, this.#said);
      return this.#said.includes('is ready');
    });
  }

  /** All that the daemon wrote since it was started. */
  get said(): string {
    return this.#said;
  }

  /** The daemon alone; Incus and its guests go on. */
  async end(by: NodeJS.Signals): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const gone = once(daemon, 'exit');
    daemon.kill(by);
    await unhung('the daemon ends', gone);
  }

  async killIncus(): Promise<void> {
    const pid = await until('Incus runs', () => findDaemon(this.place));
    process.kill(pid, 'SIGKILL');
    await until('another Incus runs', async () => {
      const now = await findDaemon(this.place);
      return now !== undefined && now !== pid;
    });
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

  /** Of computers and of images there are as many as this; everything else is left over. */
  async assertOnly(counts: { computers: number; images: number }): Promise<void> {
    const names = (await this.instances()).map(({ name }) => name);
    assert.equal(names.length, counts.computers + counts.images, names.join());
    assert.deepEqual(readdirSync(join(this.dataDir, 'host/links')).toSorted(), names.toSorted());
  }

  /**
   * `file:text` for each of these texts in the host's own folders, or on the disk of a build: there in what
   * has changed since it booted, by the time that nobody can set.
   */
  async search(
    texts: readonly string[],
    where: { readonly instance: string } | 'host',
  ): Promise<string[]> {
    const wanted = texts.map((text) => `--regexp=${text}`);
    const args = ['--text', '--with-filename', '--only-matching', '--fixed-strings', ...wanted];
    for (;;) {
      const found = await this.#files(where);
      assert.notEqual(found.length, 0);
      try {
        const { stdout } = await runProgram('grep', [...args, '--', ...found]);
        return stdout.trim().split('\n');
      } catch (error) {
        const { code, stderr } = error as { code: number; stderr: string };
        // Incus gives its files other names now and then.
        if (code === 2 && stderr.includes('No such file')) continue;
        // Nothing was found; a file that cannot be read is another matter.
        assert.equal(code, 1, stderr);
        return [];
      }
    }
  }

  async #files(where: { readonly instance: string } | 'host'): Promise<string[]> {
    if (where === 'host') {
      const own = ['host', 'incus.log', 'incus/logs', 'incus/database', 'incus/containers'];
      return filesIn(own.map((name) => join(this.dataDir, name)));
    }
    const pid = await until('Incus runs', () => findDaemon(this.place));
    const pool = `/proc/${pid}/root${this.place.alias}/storage-pools/${this.place.pool}`;
    return changedIn(`${pool}/containers/${where.instance}`);
  }

  /** What a line of shell prints in a computer; it must succeed. */
  async run(computer: string, command: string, session = 'system'): Promise<string> {
    const path = `/computers/${computer}/exec`;
    const answer = await until('the guest answers', async () => {
      const { status, body } = await this.orders.send('POST', path, {
        command,
        session,
        timeout_s: 60,
      });
      return status === 200 && (body as { exit_code: number; stdout_b64: string });
    });
    const output = Buffer.from(answer.stdout_b64, 'base64').toString('utf8');
    assert.equal(answer.exit_code, 0, output);
    return output;
  }

  async close(): Promise<void> {
    try {
      await this.end('SIGTERM');
    } finally {
      await this.end('SIGKILL');
      await erase(this.place);
      await removeGround(this.dataDir, this.place);
    }
  }
}

async function filesIn(folders: readonly string[], ...which: readonly string[]): Promise<string[]> {
  const { stdout } = await runProgram(
    'find',
    [...folders, '-ignore_readdir_race', '-type', 'f', ...which, '-print0'],
    {
      maxBuffer: 16 * 1024 * 1024,
    },
  );
  return stdout.split('\0').filter((name) => name !== '');
}

/** The guest notes its id at each boot. */
function changedIn(disk: string): Promise<string[]> {
  return filesIn([disk], '-cnewer', `${disk}/rootfs/var/lib/cubicle/computer`);
}
