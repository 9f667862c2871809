// What a watched tree has to tell, on its way to the host: gathered for a moment, then sent as fast as the
// host takes it. Meanwhile more is gathered, within bounds.

import type { FileChange, WatchNews } from '@cubicle/contract/guest/messages.ts';
import { Pending } from './pending.ts';

/** A file that is written bit by bit is told of ten times a second. */
const gatherMs = 100;
/** Beyond what `Pending` holds, for a tree that comes and goes while the host does not read. */
const mostSealed = 4_096;

export class Outbox {
  /** False: nobody listens any more. */
  readonly #send: (lines: Buffer) => Promise<boolean>;
  readonly #pending = new Pending();
  /** In order, and no longer to be coalesced. */
  #sealed: WatchNews[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending = false;
  #closed = false;

  constructor(send: (lines: Buffer) => Promise<boolean>) {
    this.#send = send;
  }

  changed(path: string, kind: FileChange['kind'], dir: boolean): void {
    this.#pending.add(path, kind, dir);
    this.#gather();
  }

  flooded(): void {
    this.#pending.flood();
    this.#gather();
  }

  /** After the changes before it. */
  tell(news: WatchNews): void {
    this.#seal(news);
    void this.#pump();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #gather(): void {
    if (this.#sending || this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#seal();
      void this.#pump();
    }, gatherMs);
  }

  #seal(...more: WatchNews[]): void {
    this.#sealed.push(...this.#pending.take(), ...more);
    if (this.#sealed.length > mostSealed) this.#sealed = [{ lost: 'flood' }, ...more];
  }

  async #pump(): Promise<void> {
    if (this.#sending || this.#closed) return;
    this.#sending = true;
    while (this.#sealed.length > 0) {
      const lines = this.#sealed.map((news) => `${JSON.stringify(news)}\n`).join('');
      this.#sealed = [];
      if (!(await this.#send(Buffer.from(lines)))) this.close();
    }
    this.#sending = false;
    if (!this.#pending.empty) this.#gather();
  }
}
