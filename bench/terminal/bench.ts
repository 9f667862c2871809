// A terminal through agent and host: how long a key takes to be echoed, and `cat` of 50 MB against a bare
// pty read by Python, in alternating rounds, so that what else the machine does falls on both alike.

import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, round, timed } from '../figures.ts';
import { openGuest, type Screen } from './guest.ts';

const rounds = 5;
const keys = 500;
const line = `${'x'.repeat(79)}\n`;
const bytes = 50_000_000;
/** A pty sends a carriage return before each newline. */
const shown = (bytes / line.length) * (line.length + 1);

export async function run(): Promise<void> {
  const guest = await openGuest();
  try {
    const file = join(guest.folder, 'fifty');
    await writeFile(file, line.repeat(bytes / line.length));
    const screen = await guest.attach();
    const echo = await echoes(screen);
    const ratios: number[] = [];
    const rates: number[] = [];
    for (let n = 0; n < rounds; n += 1) {
      const bare = Number(execFileSync('/usr/bin/python3', [path('bare.py'), file]).toString());
      const ours = await cat(screen, file);
      ratios.push(bare / ours);
      rates.push(shown / ours / 1e6);
      console.log(
        `${(shown / ours / 1e6).toFixed(0)} MB/s, bare ${(shown / bare / 1e6).toFixed(0)} MB/s`,
      );
    }
    console.log(
      JSON.stringify({
        bench: 'terminal',
        ratio: round(median(ratios)),
        echo_p50_ms: round(median(echo)),
        echo_p99_ms: round(echo.toSorted((a, b) => a - b)[Math.floor(keys * 0.99)] as number),
        megabytes_per_second: round(median(rates)),
      }),
    );
  } finally {
    await guest.close();
  }
}

/** Milliseconds of each key; the kernel echoes while `cat` reads. */
async function echoes(screen: Screen): Promise<number[]> {
  screen.type('cat >/dev/null\n');
  await screen.quiet();
  const times: number[] = [];
  for (let n = 0; n < keys; n += 1) {
    const [ms] = await timed(async () => {
      const seen = screen.shows(screen.count + 1);
      screen.type('k');
      await seen;
    });
    times.push(ms);
  }
  screen.type('\u0003');
  await screen.quiet();
  return times;
}

/** Seconds. */
async function cat(screen: Screen, file: string): Promise<number> {
  const typed = `cat ${file}`;
  const seen = screen.shows(screen.count + typed.length + shown);
  const [ms] = await timed(async () => {
    screen.type(`${typed}\n`);
    await seen;
  });
  await screen.quiet();
  return ms / 1_000;
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
