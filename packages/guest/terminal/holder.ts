// The holder of a session as the agent reaches it: a process that is started once, and connections to it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { errorCode, Refused } from '../refused.ts';
import { attachFrame, HolderDecoder, type HolderFrame } from './frames.ts';
import program from './holder.py';
import { Intake } from './intake.ts';

/** What a holder is told, as Python reads it too: strings, numbers and maps of strings. */
export interface HolderConfig {
  readonly socket: string;
  readonly shell: string;
  readonly home: string;
  readonly user: string;
  readonly uid: number;
  readonly gid: number;
  readonly env: Readonly<Record<string, string>>;
}

/** The system's own, whatever somebody put before it. */
const python = '/usr/bin/python3';
/** A holder starts in 30 ms and answers in one. */
const patienceMs = 5_000;

/** Returns when it listens. It stays when the agent goes. */
export async function startHolder(config: HolderConfig): Promise<void> {
  // From its input: in the list of processes nobody wants to read it. `-S`: nobody's packages.
  const child = spawn(python, ['-I', '-S', '-', config.socket], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { LANG: 'C.UTF-8' },
    cwd: '/',
    detached: true,
  });
  const { stdin, stdout } = child;
  stdin.on('error', () => {});
  stdin.end(`${program}\nhold(${JSON.stringify(config)})\n`);
  const late = setTimeout(() => child.kill('SIGKILL'), patienceMs);
  const begun = Promise.withResolvers<boolean>();
  stdout.once('data', () => begun.resolve(true));
  child.once('exit', () => begun.resolve(false));
  child.on('error', begun.reject);
  stdout.on('error', begun.reject);
  try {
    if (!(await begun.promise)) throw new Refused('failed', { detail: 'no terminal' });
  } catch (error) {
    throw errorCode(error) === 'ENOENT' ? new Refused('failed', { detail: python }) : error;
  } finally {
    clearTimeout(late);
    stdout.destroy();
  }
}

/** Nothing where no holder listens. */
export async function reach(path: string): Promise<HolderLink | undefined> {
  const intake = new Intake();
  const socket = await connected(createConnection({ path, onread: intake.onread }));
  return socket && new HolderLink(socket, intake);
}

export async function lives(path: string): Promise<boolean> {
  try {
    const socket = await connected(createConnection(path));
    socket?.destroy();
    return socket !== undefined;
  } catch {
    // It has more visitors than it can welcome.
    return true;
  }
}

async function connected(socket: Socket): Promise<Socket | undefined> {
  try {
    await once(socket, 'connect');
    // What goes wrong later shows as its end.
    socket.on('error', () => {});
    return socket;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined;
    throw error;
  }
}

/** One attachment, from the agent's side. */
export class HolderLink {
  readonly #socket: Socket;
  readonly #frames: AsyncGenerator<HolderFrame, void, undefined>;

  constructor(socket: Socket, intake: Intake) {
    this.#socket = socket;
    intake.join(socket);
    this.#frames = framesOf(intake);
  }

  /** How much input is pending; nothing when the session ended before it heard of us. */
  async attach(cols: number, rows: number): Promise<number | undefined> {
    let silent = false;
    const late = setTimeout(() => {
      silent = true;
      this.close();
    }, patienceMs);
    try {
      this.#socket.write(attachFrame(cols, rows));
      const first = await this.next();
      if (silent) throw new Refused('failed', { detail: 'the terminal does not answer' });
      return first?.type === 'attached' ? first.pending : undefined;
    } finally {
      clearTimeout(late);
    }
  }

  /** Nothing when the holder has no more to say. It is not read from while nobody asks for the next. */
  async next(): Promise<HolderFrame | undefined> {
    const { value } = await this.#frames.next();
    return value ?? undefined;
  }

  /** Returns when the holder has room for more. */
  async write(...pieces: readonly Buffer[]): Promise<void> {
    const socket = this.#socket;
    socket.cork();
    for (const piece of pieces) socket.write(piece);
    socket.uncork();
    if (!socket.writableNeedDrain || socket.destroyed) return;
    const free = Promise.withResolvers<void>();
    socket.once('drain', free.resolve);
    socket.once('close', free.resolve);
    await free.promise;
    socket.off('drain', free.resolve);
    socket.off('close', free.resolve);
  }

  /** No more input. The holder lets go when it has heard all of it. */
  end(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}

async function* framesOf(intake: Intake): AsyncGenerator<HolderFrame, void, undefined> {
  const decoder = new HolderDecoder();
  try {
    for (let piece = await intake.next(); piece; piece = await intake.next()) {
      yield* decoder.push(piece);
    }
  } catch {
    // Nonsense: there is nothing more to hear.
  }
}
