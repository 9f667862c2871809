// Named pipes for the output of commands. Node's own pipes to a child are sockets, and nothing can open
// /dev/stdout or /dev/stderr on a socket, which scripts do all the time.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, openSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Refused } from './refused.ts';
import { randomName } from './random-name.ts';

export interface PipeEnds {
  readonly read: number;
  readonly write: number;
}

/** One run of mkfifo (2 ms) makes these many, so that a command seldom waits for it. */
const atOnce = 32;
const low = 8;

export class Fifos {
  readonly #folder: string;
  #ready: string[] = [];
  #making: Promise<void> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Both ends of a pipe that has no name any more. */
  async take(): Promise<PipeEnds> {
    try {
      return await this.#open();
    } catch {
      // Somebody in the guest removed them: what is left of them is of no use.
      this.#ready = [];
      return this.#open();
    }
  }

  async #open(): Promise<PipeEnds> {
    while (this.#ready.length === 0) await this.#make();
    const path = this.#ready.pop() as string;
    if (this.#ready.length < low) this.#make().catch(() => {});
    const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return { read, write: openSync(path, constants.O_WRONLY) };
    } catch (error) {
      closeSync(read);
      throw error;
    } finally {
      unlinkSync(path);
    }
  }

  /** Anybody may open one again through /proc/self/fd; its folder keeps everybody else away. */
  #make(): Promise<void> {
    const paths = Array.from({ length: atOnce }, () => join(this.#folder, `pipe-${randomName(8)}`));
    this.#making ??= this.#run(paths);
    return this.#making;
  }

  async #run(paths: string[]): Promise<void> {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const child = spawn('mkfifo', ['-m', '0666', ...paths], { stdio: 'ignore' });
      const [code] = (await once(child, 'exit')) as [number | null];
      if (code !== 0) throw new Refused('no_room', { detail: 'no pipe could be made' });
      this.#ready.push(...paths);
    } finally {
      this.#making = undefined;
    }
  }
}
