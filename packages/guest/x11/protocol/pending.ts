// Requests whose outcome somebody waits for, in the order in which they were sent. The X server answers
// in that order, so what it says about one request tells that those before it are done.

import { DisplayError } from '../../desktop/trouble.ts';
import { RequestError } from './request-error.ts';

export interface Expectation {
  /** Bytes of the longest reply that is read; nothing for a request that has none. */
  readonly most?: number;
  /** Throws a RangeError when the reply is too short. */
  resolve(reply: Buffer): void;
  reject(error: unknown): void;
}

interface Entry extends Expectation {
  readonly sequence: number;
  readonly sentAt: number;
  abandoned: boolean;
}

/** No caller of ours sends more ahead of the answers. */
const mostEntries = 8_192;
const none = Buffer.alloc(0);

export class Pending {
  #entries: Entry[] = [];
  /** Entries before it are settled. They are let go together, since a shift each is slow for thousands. */
  #first = 0;

  /** Answers what to call when nobody waits any more: the reply will come all the same. */
  add(sequence: number, expectation: Expectation): () => void {
    if (this.#entries.length - this.#first >= mostEntries) {
      throw new DisplayError('lost', 'the display owes too many answers');
    }
    const entry = { ...expectation, sequence, sentAt: performance.now(), abandoned: false };
    this.#entries.push(entry);
    return () => {
      entry.abandoned = true;
    };
  }

  /** When the request was sent that has been waiting longest. */
  get oldest(): number | undefined {
    return this.#entries[this.#first]?.sentAt;
  }

  /** The X server has come to this request: what has no reply and came before is done. */
  reached(sequence: number): void {
    for (let entry = this.#next(); entry !== undefined; entry = this.#next()) {
      if (entry.sequence >= sequence) return;
      if (entry.most !== undefined) throw new DisplayError('lost', 'the display left out a reply');
      this.#settle();
      if (!entry.abandoned) entry.resolve(none);
    }
  }

  /** Whether somebody waits for a reply of this length. */
  wants(sequence: number, length: number): boolean {
    const entry = this.#next();
    return (
      entry?.sequence === sequence &&
      !entry.abandoned &&
      entry.most !== undefined &&
      length <= entry.most
    );
  }

  replied(sequence: number, reply: Buffer, length: number): void {
    const entry = this.#next();
    if (entry?.sequence !== sequence || entry.most === undefined) {
      throw new DisplayError('lost', 'the display replied to nothing');
    }
    this.#settle();
    if (entry.abandoned) return;
    if (length <= entry.most) entry.resolve(reply);
    else entry.reject(new DisplayError('too_large', `a reply of ${length} bytes`));
  }

  failed(sequence: number, code: number, opcode: number): void {
    const entry = this.#next();
    // Nobody waits for the outcome of most requests.
    if (entry?.sequence !== sequence) return;
    this.#settle();
    if (!entry.abandoned) entry.reject(new RequestError(code, opcode));
  }

  rejectAll(error: unknown): void {
    const left = this.#entries.slice(this.#first);
    this.#entries = [];
    this.#first = 0;
    for (const entry of left) if (!entry.abandoned) entry.reject(error);
  }

  #next(): Entry | undefined {
    return this.#entries[this.#first];
  }

  #settle(): void {
    this.#first += 1;
    if (this.#first < 256 && this.#first < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}
