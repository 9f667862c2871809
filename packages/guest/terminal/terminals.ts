// What the host asks of terminals: an attachment to a session, which is made if there is none of its name.
// Sessions are where their sockets are: the agent remembers none, so it finds them all when it starts again.

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Channel } from '@cubicle/contract/guest/channel.ts';
import {
  decodeMessage,
  encodeMessage,
  type GuestRequest,
  type TerminalAnswer,
  type TerminalNews,
  terminalResize,
} from '@cubicle/contract/guest/messages.ts';
import { limits } from '@cubicle/contract/limits.ts';
import { findAccount, ownAccount } from '../accounts.ts';
import { environment } from '../command-line.ts';
import { Refused } from '../refused.ts';
import { readSession } from '../session.ts';
import { inputHeader, resizeFrame } from './frames.ts';
import { type HolderLink, lives, reach, startHolder } from './holder.ts';

type Asked = Extract<GuestRequest, { op: 'terminal' }>;

/** A session may end just when somebody comes; one that always does is broken. */
const mostTries = 3;

export interface TerminalsOptions {
  /** Of the holders' sockets, each by its session's name. */
  readonly folder: string;
  readonly sessionEnv: string;
  /** Variables of bound secrets. */
  readonly secrets: () => Readonly<Record<string, string>>;
  readonly user: string;
}

export class Terminals {
  readonly #options: TerminalsOptions;
  /** Sessions are made one at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: TerminalsOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  }

  async attach(channel: Channel, asked: Asked): Promise<void> {
    const attached = await this.#attached(asked);
    if (attached === 'lost_race') {
      channel.accept(encodeMessage({ pending: 0, lost_race: true } satisfies TerminalAnswer));
      channel.end();
      return;
    }
    const { holder, pending } = attached;
    channel.accept(encodeMessage({ pending, lost_race: false } satisfies TerminalAnswer));
    void passInput(channel, holder);
    try {
      await passOutput(channel, holder);
    } finally {
      holder.close();
      channel.end();
    }
  }

  async #attached(asked: Asked): Promise<{ holder: HolderLink; pending: number } | 'lost_race'> {
    const path = join(this.#options.folder, asked.session);
    for (let tries = 0; tries < mostTries; tries += 1) {
      const holder = (await reach(path)) ?? (await this.#made(path, asked.create));
      if (holder === 'lost_race') return holder;
      const pending = await holder.attach(asked.cols, asked.rows);
      if (pending !== undefined) return { holder, pending };
      holder.close();
    }
    throw new Refused('failed', { detail: 'the terminal ends as soon as it begins' });
  }

  async #made(path: string, create: boolean): Promise<HolderLink | 'lost_race'> {
    if (!create) throw new Refused('absent');
    const alone = this.#waiting === 0;
    this.#waiting += 1;
    const mine = this.#turn.then(() => this.#make(path));
    this.#turn = mine.catch(() => {});
    try {
      return (await mine) ?? full(alone);
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Nothing when there is no place. */
  async #make(path: string): Promise<HolderLink | undefined> {
    // Somebody may have made it while we waited for our turn.
    const there = await reach(path);
    if (there !== undefined) return there;
    if ((await this.#count()) >= limits.terminalSessions) return undefined;
    const { sessionEnv, secrets, user } = this.#options;
    const account = findAccount(user) ?? ownAccount();
    const env = { ...environment(account, readSession(sessionEnv) ?? {}), ...secrets() };
    const { name, uid, gid, home, shell } = account;
    await startHolder({
      socket: path,
      user: name,
      uid,
      gid,
      home,
      shell,
      env: { ...env, TERM: 'xterm-256color', COLORTERM: 'truecolor' },
    });
    return reach(path);
  }

  /** Sessions that live; what is left of one whose holder was killed goes. */
  async #count(): Promise<number> {
    const { folder } = this.#options;
    const paths = readdirSync(folder).map((name) => join(folder, name));
    const alive = await Promise.all(paths.map((path) => lives(path)));
    paths.forEach((path, i) => {
      if (alive[i] === false) rmSync(path, { recursive: true, force: true });
    });
    return alive.filter(Boolean).length;
  }
}

function full(alone: boolean): 'lost_race' {
  if (alone) throw new Refused('too_many');
  return 'lost_race';
}

/** To the end of the host's interest. */
async function passInput(channel: Channel, holder: HolderLink): Promise<void> {
  try {
    for (let piece = await channel.receive(); piece; piece = await channel.receive()) {
      const { stream, bytes } = piece;
      if (stream === 0) {
        await holder.write(inputHeader(bytes.length), bytes);
      } else {
        const { cols, rows } = decodeMessage(bytes, terminalResize);
        await holder.write(resizeFrame(cols, rows));
      }
    }
    // Nobody is there any more, but what was typed before that is not lost.
    holder.end();
  } catch {
    // The host gave up, or is gone.
    holder.close();
  }
}

/** To the end of the session, of this attachment, or of the host's interest. */
async function passOutput(channel: Channel, holder: HolderLink): Promise<void> {
  for (let frame = await holder.next(); frame; frame = await holder.next()) {
    if (frame.type === 'output') {
      if (!(await channel.send(0, frame.bytes))) return;
    } else if (frame.type !== 'attached') {
      if (!(await channel.send(1, encodeMessage(frame satisfies TerminalNews)))) return;
    }
  }
}
