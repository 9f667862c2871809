// The shipped agent as a process of this machine, and a terminal on it whose output is only counted.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bundleAgent } from '../../packages/guest/bundle.ts';
import { GuestLinks } from '../../packages/host/guest/links.ts';
import type { Attachment, Ends } from '../../packages/host/terminal/attachment.ts';
import { Terminals } from '../../packages/host/terminal/terminals.ts';

const computer = 'vm-0123456789ab';
const context = { signal: new AbortController().signal };

export interface BenchGuest {
  readonly folder: string;
  attach(): Promise<Screen>;
  close(): Promise<void>;
}

export async function openGuest(): Promise<BenchGuest> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-bench-'));
  for (const name of ['link', 'run', 'state', 'root']) await mkdir(join(folder, name));
  const links = new GuestLinks();
  await links.open(computer, join(folder, 'link'));
  await writeFile(join(folder, 'agent.mjs'), await bundleAgent());
  const agent = spawn(process.execPath, [join(folder, 'agent.mjs')], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: join(folder, 'root'),
      CUBICLE_LINK: join(folder, 'link', 'agent.sock'),
      CUBICLE_RUN: join(folder, 'run'),
      CUBICLE_EXEC: join(folder, 'exec'),
      CUBICLE_STATE: join(folder, 'state'),
    },
  });
  const gone = once(agent, 'exit');
  await links.whenConnected(context, computer);
  const terminals = new Terminals(links, { state: async () => 'running', starting: () => false });
  let screen: Screen | undefined;
  return {
    folder,
    async attach() {
      const asked = { session: 'main', cols: 80, rows: 24 };
      const result = await terminals.attach(context, computer, asked);
      if (!result.ok) throw new Error(result.message);
      screen = new Screen(result.attachment);
      await screen.quiet();
      return screen;
    },
    async close() {
      screen?.type('exit\n');
      await screen?.over;
      agent.kill();
      await gone;
      await links.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export class Screen implements Ends {
  readonly #attachment: Attachment;
  readonly #over = Promise.withResolvers<void>();
  readonly over = this.#over.promise;
  #awaited: { count: number; seen: () => void } | undefined;
  count = 0;

  constructor(attachment: Attachment) {
    this.#attachment = attachment;
    attachment.join(this);
  }

  output(bytes: Buffer): boolean {
    this.count += bytes.length;
    if (this.#awaited !== undefined && this.count >= this.#awaited.count) this.#awaited.seen();
    return true;
  }

  control(): void {}

  close(): void {
    this.#over.resolve();
  }

  cut(): void {}

  type(text: string): void {
    this.#attachment.input(Buffer.from(text));
  }

  /** Resolves when so many bytes have been shown in all. */
  async shows(count: number): Promise<void> {
    const seen = Promise.withResolvers<void>();
    this.#awaited = { count, seen: seen.resolve };
    await seen.promise;
    this.#awaited = undefined;
  }

  /** Nothing has come for a while: the prompt is there. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.count; await pause(300)) before = this.count;
  }
}
