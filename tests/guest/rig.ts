// A computer without a container: the shipped agent as a process of this machine, linked to a host's side
// over a real socket in a folder of its own. Whatever a test leaves is ended and removed.

import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { GuestLinks, type GuestLinksOptions } from '../../packages/host/guest/links.ts';
import type { GuestEvent } from '../../packages/host/guest/guest.ts';
import type { Result } from '../../packages/host/guest/result.ts';
import { endAgent, endCommands, spawnAgent } from '../support/agent-process.ts';
import { unhung, until } from '../support/until.ts';

export const computer = 'vm-0123456789ab';
export const context = { signal: new AbortController().signal };

export class Rig {
  readonly folder: string;
  readonly events: GuestEvent[] = [];
  readonly #options: GuestLinksOptions;
  links: GuestLinks;
  agent: ChildProcess | undefined;

  constructor(folder: string, options: GuestLinksOptions) {
    this.folder = folder;
    this.#options = options;
    this.links = this.#newLinks();
  }

  /** `agent: false`: nobody has connected yet. */
  static async of(
    t: TestContext,
    { agent = true, ...options }: GuestLinksOptions & { readonly agent?: boolean } = {},
  ): Promise<Rig> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'cubicle-guest-')));
    const rig = new Rig(folder, options);
    t.after(() => rig.clear());
    for (const name of ['link', 'files', 'run', 'root']) await mkdir(rig.at(name));
    await rig.links.open(computer, rig.at('link'));
    if (agent) await rig.startAgent();
    return rig;
  }

  at(...names: string[]): string {
    return join(this.folder, ...names);
  }

  async startAgent(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    this.agent = await spawnAgent(this.folder, this.at('link', 'agent.sock'), settings);
    await unhung('the agent connects', this.links.whenConnected(context, computer));
  }

  async killAgent(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.agent === undefined) return;
    await endAgent(this.agent, signal);
    this.agent = undefined;
  }

  /** As a host daemon that starts again: nothing is remembered. */
  async restartHost(): Promise<void> {
    await this.links.stop();
    this.links = this.#newLinks();
    await this.links.open(computer, this.at('link'));
    await unhung('the agent comes back', this.links.whenConnected(context, computer));
  }

  #newLinks(): GuestLinks {
    const tell: GuestLinksOptions['tell'] = (id, event) => {
      this.events.push(event);
      this.#options.tell?.(id, event);
    };
    return new GuestLinks({ ...this.#options, tell });
  }

  /** A command, with all of its output. */
  async exec(command: string, more: object = {}) {
    const result = await this.links.exec(context, computer, { command, ...more }, 60_000);
    return collected(good(result));
  }

  async start(command: string, more: object = {}) {
    return good(await this.links.execStart(context, computer, { command, ...more })).execution;
  }

  /** Polls until the command has ended and everything is read. */
  async drain(pid: number) {
    const read = { stdout: '', stderr: '' };
    return until(`command ${pid} ends`, async () => {
      const polled = good(await this.links.poll(context, computer, pid));
      read.stdout += polled.stdout.toString();
      read.stderr += polled.stderr.toString();
      return polled.exitCode !== undefined && !polled.more ? { ...polled, ...read } : false;
    });
  }

  async content(path: string): Promise<Buffer> {
    const read = good(await this.links.readFile(context, computer, path));
    return Buffer.concat(await Array.fromAsync(read.content));
  }

  async clear(): Promise<void> {
    await this.killAgent();
    await this.links.stop();
    await endCommands(this.folder);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A connection that can be cut, while both ends live on. */
export class Cable {
  readonly #server: Server;
  readonly #plugged = new Set<Socket>();
  #cut = false;

  constructor(path: string, target: string) {
    this.#server = createServer((near) => {
      if (this.#cut) {
        near.destroy();
        return;
      }
      const far = createConnection(target);
      for (const end of [near, far]) {
        this.#plugged.add(end);
        end.on('error', () => {});
        end.once('close', () => {
          this.#plugged.delete(end);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    }).listen(path);
  }

  cut(): void {
    this.#cut = true;
    for (const end of this.#plugged) end.destroy();
  }

  mend(): void {
    this.#cut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

/** Fails the test with the failure's own words. */
export function good<T>(result: Result<T>): { readonly ok: true } & T {
  assert.ok(result.ok, JSON.stringify(result));
  return result;
}

export function failure(result: Result<object>): string {
  assert.ok(!result.ok, 'it should have failed');
  return result.failure;
}

export async function collected<T extends Awaited<ReturnType<GuestLinks['exec']>> & { ok: true }>(
  result: T,
) {
  const stdout = Buffer.concat(await Array.fromAsync(result.stdout));
  const stderr = Buffer.concat(await Array.fromAsync(result.stderr));
  return { ...result, stdout, stderr };
}

export function alive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}
