// The wire between the control plane and a host, with faults at hand: a socket in front of the host's own.

import { once } from 'node:events';
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import type { HostCommand } from '../../packages/contract/host/api.ts';

/** `unasked`: the command never arrives. `unheard`: it is carried out, and its answer never comes. */
export type CableFault = 'unasked' | 'unheard';

export class HostCable {
  readonly address: string;
  readonly #path: string;
  readonly #target: string;
  readonly #ends = new Set<Socket>();
  readonly #faults = new Map<string, CableFault>();
  #server: Server | undefined;

  private constructor(path: string, target: string) {
    this.#path = path;
    this.#target = target;
    this.address = `unix:${path}`;
  }

  /** `address` is the host's own; its token is taken along. */
  static async to(address: string): Promise<HostCable> {
    const target = address.replace(/^unix:/, '');
    const folder = join(dirname(target), 'cable');
    await mkdir(folder, { recursive: true });
    await copyFile(join(dirname(target), 'token'), join(folder, 'token'));
    const cable = new HostCable(join(folder, 'host.sock'), target);
    await cable.mend();
    return cable;
  }

  /** Meets the next command of this kind, or order of a build; the connection ends under it. */
  fault(kind: HostCommand['kind'] | 'build', fault: CableFault): void {
    this.#faults.set(kind, fault);
  }

  /** The host is away: nobody gets through. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    for (const end of this.#ends) end.destroy();
    await closed;
    await rm(this.#path, { force: true });
  }

  async mend(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer((near) => this.#join(near));
    this.#server = server;
    await once(server.listen(this.#path), 'listening');
  }

  #join(near: Socket): void {
    const far = createConnection(this.#target);
    let unheard = false;
    for (const end of [near, far]) {
      this.#ends.add(end);
      end.on('error', () => {});
      end.once('close', () => {
        this.#ends.delete(end);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (chunk: Buffer) => {
      const fault = this.#faultFor(chunk);
      if (fault === 'unasked') near.destroy();
      else if (!far.write(chunk)) near.pause();
      unheard ||= fault === 'unheard';
    });
    far.on('data', (chunk: Buffer) => {
      if (unheard) near.destroy();
      else if (!near.write(chunk)) far.pause();
    });
    // A cable holds nothing.
    near.on('drain', () => far.resume());
    far.on('drain', () => near.resume());
  }

  /** A command is small and comes in one piece, its headers first. */
  #faultFor(chunk: Buffer): CableFault | undefined {
    const text = chunk.toString('latin1');
    const command = /^POST \S+\/commands .*"kind":"(\w+)"/s.exec(text)?.[1];
    const kind = text.startsWith('PUT /builds/') ? 'build' : command;
    const fault = kind === undefined ? undefined : this.#faults.get(kind);
    if (kind !== undefined) this.#faults.delete(kind);
    return fault;
  }
}
