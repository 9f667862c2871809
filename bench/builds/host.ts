// A host without a control plane, spoken to as one speaks to it: orders of builds, and computers from them.

import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type HostCommand, hostOutcome, hostPaths } from '../../packages/contract/host/api.ts';
import {
  type HostBuildOrder,
  hostBuildPaths,
  hostBuildProgress,
} from '../../packages/contract/host/builds.ts';
import { type RunningHost, startHost } from '../../packages/host/main.ts';
import { purgeHost } from '../../packages/host/purge.ts';
import { Host } from '../../packages/server/hosts/host.ts';
import { localToken } from '../../packages/server/hosts/token.ts';
import type { Steps } from './by-hand.ts';

const shape = { cpu: 2, ram_mb: 2_048, disk_gb: 10 };
const timeoutMs = 600_000;

export class BenchHost {
  readonly #dataDir: string;
  readonly #running: RunningHost;
  readonly #near: Host;

  private constructor(dataDir: string, running: RunningHost) {
    this.#dataDir = dataDir;
    this.#running = running;
    const { row } = running;
    this.#near = new Host({ id: row.id, address: row.address, token: () => localToken(row) });
  }

  static async start(dataDir: string): Promise<BenchHost> {
    const cacheDir = join(homedir(), '.cache', 'cubicle');
    const settings = { dataDir, cacheDir, engine: 'incus', pool: 0, diskGb: 1_000 } as const;
    try {
      return new BenchHost(dataDir, await startHost(settings, console.log));
    } catch (error) {
      await purgeHost(dataDir, () => {});
      throw error;
    }
  }

  /** Until it is published. */
  async build(id: string, { packages, script, path, content }: Steps): Promise<void> {
    const { images } = (await this.#near.report()).host;
    const order: HostBuildOrder = {
      parent: { template: 'base', digest: images['base'] ?? '' },
      shape,
      steps: [
        { kind: 'apt', label: 'apt', packages: [...packages] },
        { kind: 'run', label: 'run', script },
        {
          kind: 'file',
          label: 'file',
          path,
          mode: '0644',
          owner: 'root',
          content_b64: Buffer.from(content).toString('base64'),
        },
        { kind: 'finish', label: 'finish', env: {} },
      ],
      secrets: {},
    };
    await this.#json('PUT', hostBuildPaths.build(id), order);
    for (let after = -1; ;) {
      const news = `${hostBuildPaths.build(id)}?after=${after}&wait_ms=30000`;
      const told = hostBuildProgress.parse(await this.#json('GET', news));
      if (told.status === 'succeeded') return;
      if (told.status === 'failed') throw new Error(`${told.note} ${told.error}`);
      after = told.moves;
    }
  }

  async remove(id: string): Promise<void> {
    await this.#json('DELETE', hostBuildPaths.build(id));
  }

  /** Stopped: from a build, or from the base image. */
  async create(id: string, build: string | undefined): Promise<void> {
    const about = { template: 'base', resolution: '1280x800x24', name: id, start: false, shape };
    const operation = `create-${id}`;
    const made = build === undefined ? {} : { build };
    await this.#done(id, { kind: 'create', operation, ...about, ...made });
  }

  async clone(id: string, source: string): Promise<void> {
    const resolution = '1280x800x24';
    const operation = `clone-${id}`;
    await this.#done(id, { kind: 'clone', operation, source, shape, resolution, name: id });
  }

  async delete(id: string): Promise<void> {
    await this.#done(id, { kind: 'delete', operation: `delete-${id}` });
  }

  async end(): Promise<void> {
    await this.#running.stop();
    await purgeHost(this.#dataDir, () => {});
    await rm(this.#dataDir, { recursive: true, force: true });
  }

  async #done(id: string, command: HostCommand): Promise<void> {
    for (;;) {
      const answer = hostOutcome.parse(await this.#json('POST', hostPaths.commands(id), command));
      if (answer.outcome === 'done') return;
      if (answer.outcome !== 'copying') throw new Error(JSON.stringify(answer));
      await pause(5);
    }
  }

  async #json(method: string, path: string, body?: unknown): Promise<unknown> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await this.#near.send({ method, path, ...sent, timeoutMs });
    const chunks = await Array.fromAsync(response as AsyncIterable<Buffer>);
    if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${response.statusCode}`);
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  }
}
