// One command: its process, its two output streams, its end.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { Capture, namelessFile } from './capture.ts';
import type { CommandLine } from './command-line.ts';
import type { Fifos } from './fifos.ts';
import type { OutputRoom } from './output-room.ts';

export interface CommandPlace {
  readonly folder: string;
  readonly fifos: Fifos;
  readonly room: OutputRoom;
}

export class Command {
  readonly pid: number;
  readonly stdout: Capture;
  readonly stderr: Capture;
  /** Resolves with the exit code once all that was written before the end is kept. */
  readonly exited: Promise<number>;
  /** Resolves when nobody holds its output any more. */
  readonly closed: Promise<unknown>;
  #exitCode: number | undefined;

  constructor(child: ChildProcess, pid: number, stdout: Capture, stderr: Capture) {
    this.pid = pid;
    this.stdout = stdout;
    this.stderr = stderr;
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        stdout.catchUp();
        stderr.catchUp();
        this.#exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
        resolve(this.#exitCode);
      });
    });
    this.closed = Promise.all([this.exited, stdout.closed, stderr.closed]);
  }

  /** Nothing while it runs. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** It runs on; its output goes nowhere. */
  letGo(): void {
    this.stdout.forget();
    this.stderr.forget();
  }
}

export async function startCommand(line: CommandLine, place: CommandPlace): Promise<Command> {
  const open: number[] = [];
  try {
    const stdout = await place.fifos.take();
    open.push(stdout.write, stdout.read);
    const stderr = await place.fifos.take();
    open.push(stderr.write, stderr.read);
    const stdio: ('ignore' | number)[] = ['ignore', stdout.write, stderr.write];
    if (line.script !== undefined) {
      const script = namelessFile(place.folder);
      open.push(script);
      writeWhole(script, Buffer.from(line.script));
      stdio.push(script);
    }
    const [file, ...args] = line.argv;
    const child = spawn(file, args, {
      stdio,
      env: line.env,
      cwd: existsSync(line.home) ? line.home : '/',
      // A session of its own: signals to the agent's group do not reach it.
      detached: true,
    });
    if (child.pid === undefined) throw await new Promise((resolve) => child.once('error', resolve));
    child.on('error', () => {});
    // From here on the reading ends are closed by those who read them.
    open.splice(open.indexOf(stdout.read), 1);
    open.splice(open.indexOf(stderr.read), 1);
    const captures = [stdout.read, stderr.read].map(
      (fd) => new Capture(fd, place.folder, place.room),
    ) as [Capture, Capture];
    return new Command(child, child.pid, ...captures);
  } finally {
    for (const fd of open) closeSync(fd);
  }
}

/** By position, so that its reader starts at the beginning. */
function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, at);
}
