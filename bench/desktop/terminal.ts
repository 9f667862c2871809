// A terminal of a computer as a caller has it: how long a key takes to be echoed, and `cat` of 50 MB against
// a bare pipe from a pty of this machine to a WebSocket, in alternating rounds.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { median, percentile, timed } from '../figures.ts';
import type { BenchGuest } from './guest.ts';

const rounds = 7;
const keys = 500;
const line = `${'x'.repeat(79)}\n`;
const bytes = 50_000_000;
/** A pty sends a carriage return before each newline. */
const shown = (bytes / line.length) * (line.length + 1);

export async function terminal(guest: BenchGuest): Promise<Record<string, number>> {
  const folder = await mkdtemp(join(tmpdir(), 'cubicle-bench-'));
  const file = join(folder, 'fifty');
  const content = Buffer.from(line.repeat(bytes / line.length));
  await writeFile(file, content);
  await guest.put('/tmp/fifty', content);
  const child = fork(fileURLToPath(new URL('./bare-terminal.ts', import.meta.url)), [file]);
  try {
    const [bareUrl] = (await once(child, 'message')) as [string];
    const screen = await Screen.open(await guest.address('terminal_url'));
    await screen.quiet();
    const echo = await echoes(screen);
    console.log(`echo ${median(echo).toFixed(2)} ms`);
    const [ratios, rates]: [number[], number[]] = [[], []];
    for (let n = 0; n < rounds; n += 1) {
      const ours = await cat(screen);
      const bare = await bareCat(bareUrl);
      const rate = shown / ours / 1_000;
      console.log(`cat ${rate.toFixed(0)} MB/s, bare ${(shown / bare / 1_000).toFixed(0)} MB/s`);
      ratios.push(bare / ours);
      rates.push(rate);
    }
    screen.close();
    return {
      terminal_echo_ms: median(echo),
      terminal_echo_p99_ms: percentile(echo, 0.99),
      terminal_throughput_ratio: median(ratios),
      terminal_throughput_mb_s: median(rates),
    };
  } finally {
    child.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Milliseconds of each key; the kernel echoes while `cat` reads. */
async function echoes(screen: Screen): Promise<number[]> {
  screen.type('cat >/dev/null\n');
  await screen.quiet();
  const times: number[] = [];
  for (let n = 0; n < keys; n += 1) {
    const seen = screen.shows(1);
    const [ms] = await timed(async () => {
      screen.type('k');
      await seen;
    });
    times.push(ms);
  }
  screen.type('\u0003');
  await screen.quiet();
  return times;
}

async function cat(screen: Screen): Promise<number> {
  const typed = 'cat /tmp/fifty';
  const seen = screen.shows(typed.length + shown);
  const [ms] = await timed(async () => {
    screen.type(`${typed}\n`);
    await seen;
  });
  await screen.quiet();
  return ms;
}

async function bareCat(url: string): Promise<number> {
  const screen = await Screen.open(url);
  const seen = screen.shows(shown);
  const [ms] = await timed(async () => {
    screen.type('go');
    await seen;
  });
  screen.close();
  return ms;
}

/** A terminal whose output is only counted. */
class Screen {
  readonly #socket: WebSocket;
  #count = 0;
  #awaited: { readonly count: number; readonly seen: () => void } | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!isBinary) return;
      this.#count += data.length;
      if (this.#awaited !== undefined && this.#count >= this.#awaited.count) this.#awaited.seen();
    });
  }

  static async open(url: string): Promise<Screen> {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    const screen = new Screen(socket);
    await once(socket, 'open');
    return screen;
  }

  type(text: string): void {
    this.#socket.send(Buffer.from(text));
  }

  /** Resolves when so many more bytes have come. */
  async shows(more: number): Promise<void> {
    const seen = Promise.withResolvers<void>();
    this.#awaited = { count: this.#count + more, seen: seen.resolve };
    await seen.promise;
    this.#awaited = undefined;
  }

  /** Nothing has come for a while: the prompt is there. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.#count; await pause(300)) before = this.#count;
  }

  close(): void {
    this.#socket.close();
  }
}
