// Programs that the agent runs on the desktop: as its user, in its session.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { findAccount, isRoot, ownAccount } from '../accounts.ts';
import { environment } from '../command-line.ts';
import { readSession } from '../session.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { within } from '../desktop/waiting.ts';

export interface ProgramsOptions {
  readonly sessionEnv: string;
  readonly user: string;
}

export interface Finished {
  readonly code: number | null;
  readonly out: Buffer;
}

/** How long a program may take that only asks the compositor. */
const patienceMs = 10_000;

export class Programs {
  readonly #options: ProgramsOptions;

  constructor(options: ProgramsOptions) {
    this.#options = options;
  }

  /** Trouble `lost` when there is no session. */
  session(): Record<string, string> {
    const session = readSession(this.#options.sessionEnv);
    if (session === undefined) throw new DisplayError('lost', 'there is no session');
    return session;
  }

  start([program, ...args]: readonly [string, ...string[]]): ChildProcessWithoutNullStreams {
    const account = findAccount(this.#options.user) ?? ownAccount();
    const { uid, gid, home } = account;
    const child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: environment(account, this.session()),
      cwd: isRoot ? '/' : home,
      ...(isRoot && { uid, gid }),
    }) as unknown as ChildProcessWithoutNullStreams;
    // A program that is not there: `close` follows.
    for (const part of [child, child.stdin, child.stdout]) part.on('error', () => {});
    return child;
  }

  /** Trouble `too_large` when it writes more than `most` bytes. */
  run(
    context: Context,
    argv: readonly [string, ...string[]],
    most: number,
    input = '',
  ): Promise<Finished> {
    return within(context, patienceMs, `${argv[0]} takes too long`, async ({ signal }) => {
      const child = this.start(argv);
      const end = () => child.kill('SIGKILL');
      signal.addEventListener('abort', end, { once: true });
      try {
        signal.throwIfAborted();
        child.stdin.end(input);
        const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
        const out = await collected(child, most);
        const code = await closed;
        signal.throwIfAborted();
        return { code, out };
      } finally {
        signal.removeEventListener('abort', end);
        end();
      }
    });
  }
}

async function collected({ stdout }: ChildProcessWithoutNullStreams, most: number) {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of stdout as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > most) throw new DisplayError('too_large', 'more than was asked for');
    pieces.push(piece);
  }
  return Buffer.concat(pieces, size);
}
