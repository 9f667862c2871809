// A subscriber as Part 6.2 wants one: keeps what it believes is in the watched trees by what it is told,
// lists again where it is told that something was lost or that telling begins, and comes back with its
// cursor when its socket ends.

import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import { ClientSocket, type Frame } from './socket.ts';

/** By path: whether it is a directory. */
export type Entries = ReadonlyMap<string, boolean>;

export interface Tellings {
  readonly url: () => Promise<string>;
  readonly trees: readonly string[];
  /** What is in a tree at some moment after the call. */
  readonly list: (tree: string) => Promise<Entries>;
  /** What every reader was told at each place: all must be told the same. */
  readonly told: Map<number, string>;
}

interface Belief {
  entries: Map<string, boolean>;
  /** Told while a listing is under way; then it is seen again on top of that. */
  waiting: Frame[] | undefined;
  again: boolean;
}

export class TreeReader {
  readonly #on: Tellings;
  readonly #beliefs: Map<string, Belief>;
  #socket: ClientSocket | undefined;
  #heard = 0;
  #cursor = '';
  #next: number | undefined;
  #ended = false;
  readonly armed = new Set<string>();
  losses = 0;
  changes = 0;
  returns = 0;
  /** The first thing that was not as it should be. */
  fault: unknown;

  constructor(on: Tellings) {
    this.#on = on;
    this.#beliefs = new Map(
      on.trees.map((tree) => [tree, { entries: new Map(), waiting: undefined, again: false }]),
    );
  }

  async open(): Promise<void> {
    const watches = this.#on.trees.map((tree) => `&watch=${encodeURIComponent(tree)}`).join('');
    const since = this.#cursor === '' ? '' : `&since=${this.#cursor}`;
    this.#socket = await ClientSocket.open((await this.#on.url()) + watches + since);
    this.#heard = 0;
    this.#socket.socket.on('message', () => this.#read());
    this.#socket.socket.on('close', () => void this.#back());
    this.#read();
  }

  /** As a network would; it comes back by itself. */
  cut(): void {
    this.#socket?.socket.terminate();
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#socket?.close();
  }

  /** Nothing while a listing is under way. */
  believes(tree: string): Entries | undefined {
    const { entries, waiting } = this.#beliefs.get(tree) as Belief;
    return waiting === undefined ? entries : undefined;
  }

  async #back(): Promise<void> {
    if (this.#ended) return;
    this.returns += 1;
    // As clients do it: the socket that was cut may still count, and a call may come too late.
    await until('it is let in again', async () => {
      if (!this.#ended) await this.open();
      return true;
    }).catch((error: unknown) => (this.fault ??= error));
  }

  #read(): void {
    const { frames = [] } = this.#socket ?? {};
    for (; this.#heard < frames.length; this.#heard += 1) {
      try {
        this.#hear(frames[this.#heard] as Frame);
      } catch (error) {
        this.fault ??= error;
      }
    }
    frames.length = 0;
    this.#heard = 0;
  }

  #hear(frame: Frame): void {
    const { type, seq, cursor } = frame;
    if (type === 'hello') {
      for (const { path, armed } of frame.watching ?? []) {
        if (armed) this.armed.add(path);
        if (this.#cursor === '') this.#listAnew(path);
      }
    }
    if (type === 'gap') {
      this.#next = undefined;
      for (const tree of this.#on.trees) this.#lost(tree);
    }
    if (cursor !== undefined) this.#cursor = cursor;
    if (seq === undefined) return;
    assert.equal(seq, this.#next ?? seq, 'something was left out or told twice');
    this.#next = seq + 1;
    const text = JSON.stringify(frame);
    const others = this.#on.told.get(seq);
    if (others === undefined) this.#on.told.set(seq, text);
    else assert.equal(text, others, 'readers were told different things');
    if (type === 'file.changed') this.#change(frame);
  }

  #change(frame: Frame): void {
    const { watch, path, armed, lost } = frame.data as Record<string, unknown>;
    const tree = watch as string;
    assert.ok(lost === undefined || lost === 'flood', `it is lost for good: ${String(lost)}`);
    if (lost !== undefined) return this.#lost(tree);
    if (armed === true) {
      this.armed.add(tree);
      return this.#listAnew(tree);
    }
    const { entries, waiting } = this.#beliefs.get(tree) as Belief;
    assert.ok((path as string).startsWith(`${tree}/`));
    this.changes += 1;
    if (waiting === undefined) apply(entries, frame);
    else waiting.push(frame);
    return undefined;
  }

  #lost(tree: string): void {
    this.losses += 1;
    this.#listAnew(tree);
  }

  #listAnew(tree: string): void {
    const belief = this.#beliefs.get(tree) as Belief;
    // What was told before the loss is in any listing from now on.
    belief.again = belief.waiting !== undefined;
    const first = belief.waiting === undefined;
    belief.waiting = [];
    if (first) void this.#list(tree, belief).catch((error: unknown) => (this.fault ??= error));
  }

  async #list(tree: string, belief: Belief): Promise<void> {
    do {
      belief.again = false;
      belief.entries = new Map(await this.#on.list(tree));
    } while (belief.again);
    for (const frame of belief.waiting ?? []) apply(belief.entries, frame);
    belief.waiting = undefined;
  }
}

/** With a directory all that was in it is gone. */
function apply(entries: Map<string, boolean>, { data }: Frame): void {
  const { path, kind, dir } = data as { path: string; kind: string; dir?: true };
  if (kind !== 'deleted') {
    entries.set(path, dir === true);
    return;
  }
  const directory = dir === true || entries.get(path) === true;
  entries.delete(path);
  if (!directory) return;
  for (const below of entries.keys()) if (below.startsWith(`${path}/`)) entries.delete(below);
}
