// A host on the simulated engine, its computers as tests make them beside the API, and agents for them.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostCommand, HostOutcome } from '../../packages/contract/host/api.ts';
import { SimulatedEngine } from '../../packages/host/engine/simulated/engine.ts';
import { type RunningHost, startHost } from '../../packages/host/main.ts';
import { newId } from '../../packages/server/app/secrets.ts';
import { type ComputerRow, insertComputer } from '../../packages/server/db/computers.ts';
import type { Database } from '../../packages/server/db/database.ts';
import { Host } from '../../packages/server/hosts/host.ts';
import { localToken } from '../../packages/server/hosts/token.ts';
import { endAgent, endCommands, spawnAgent } from './agent-process.ts';
import { HostCable } from './host-cable.ts';
import { until } from './until.ts';

export class SimulatedHost {
  readonly engine: SimulatedEngine;
  readonly cable: HostCable;
  /** As a control plane reaches it, past the cable. */
  readonly near: Host;
  readonly #running: RunningHost;
  readonly #folder: string;
  readonly #agents: TestAgent[] = [];

  private constructor(running: RunningHost, folder: string, cable: HostCable) {
    assert.ok(running.engine instanceof SimulatedEngine);
    this.engine = running.engine;
    this.cable = cable;
    this.#running = running;
    this.#folder = folder;
    const { row } = running;
    this.near = new Host({ id: row.id, address: row.address, token: () => localToken(row) });
  }

  static async start(folder: string): Promise<SimulatedHost> {
    const settings = { dataDir: folder, cacheDir: folder, engine: 'simulated', pool: 0 } as const;
    const running = await startHost(settings, () => {}, { log: () => {} });
    return new SimulatedHost(running, folder, await HostCable.to(running.row.address));
  }

  /** As it is registered: the control plane speaks through the cable. */
  get row(): RunningHost['row'] {
    return { ...this.#running.row, address: this.cable.address };
  }

  /** The engine's instances that belong to a computer. */
  async instances(): Promise<Map<string, string>> {
    const all = await this.engine.list({ signal: new AbortController().signal });
    return new Map(all.map(({ id, labels }) => [labels['computer'] ?? '', id]));
  }

  async instanceOf(computer: string): Promise<string> {
    const id = (await this.instances()).get(computer);
    assert.ok(id, `the host has no ${computer}`);
    return id;
  }

  /** Where the guest of a computer finds its host. */
  async linkOf(computer: string): Promise<string> {
    return join(this.#folder, 'host/links', await this.instanceOf(computer), 'agent.sock');
  }

  command(computer: string, command: HostCommand): Promise<HostOutcome> {
    return this.near.command(computer, command, 30_000);
  }

  /** A computer in the records and on the host, without a call of the API and what that costs. */
  async give(
    database: Database,
    wish: Pick<ComputerRow, 'account_id' | 'workspace_id'> & { readonly start: boolean },
  ): Promise<string> {
    const { start, ...owner } = wish;
    const id = newId('computer');
    const shape = { cpu: 1, ram_mb: 512, disk_gb: 10 };
    const about = { name: 'given', template: 'base', resolution: '1280x800x24' };
    const { outcome } = await this.command(id, {
      kind: 'create',
      operation: newId('operation'),
      ...about,
      shape,
      start,
    });
    assert.equal(outcome, 'done');
    const kept = { id, ...owner, host_id: this.row.id, ...about, ...shape };
    await insertComputer(database, {
      ...kept,
      desktop: null,
      active: start,
      build_source: null,
      build_id: null,
    });
    return id;
  }

  /** The shipped agent, as the guest of this computer runs it. */
  async agentOf(
    computer: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<TestAgent> {
    const agent = await TestAgent.start(await this.linkOf(computer), settings);
    this.#agents.push(agent);
    await until('the agent answers', async () => {
      const path = `/computers/${computer}/files/list?path=/`;
      const response = await this.near.send({ method: 'GET', path, timeoutMs: 30_000 });
      response.resume();
      return response.statusCode === 200;
    });
    return agent;
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents) await agent.end();
    await this.cable.cut();
    await this.#running.stop();
  }
}

export class TestAgent {
  /** The guest's own disk, as far as tests write to it. */
  readonly folder: string;
  readonly #process: ChildProcess;

  private constructor(folder: string, started: ChildProcess) {
    this.folder = folder;
    this.#process = started;
  }

  static async start(
    socket: string,
    settings: Readonly<Record<string, string>>,
  ): Promise<TestAgent> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'cubicle-agent-')));
    return new TestAgent(folder, await spawnAgent(folder, socket, settings));
  }

  at(name: string): string {
    return join(this.folder, name);
  }

  /** With all that its commands left. */
  async end(): Promise<void> {
    await endAgent(this.#process, 'SIGKILL');
    await endCommands(this.folder);
    await rm(this.folder, { recursive: true, force: true });
  }
}
