// Sorts a byte stream message by message: each is passed on, replaced or dropped as soon as its beginning
// tells which. Only beginnings are held; bodies of any length run through.

/** A grammar asks for bytes and says what becomes of them. */
export type Step =
  /** Reads so many bytes more of the message; they are held. */
  | { readonly read: number }
  /** Passes on what is held, or this instead, and the next so many bytes as they come. */
  | { readonly pass: number; readonly instead?: Buffer }
  /** Forgets what is held and the next so many bytes. */
  | { readonly drop: number };

/** Given the bytes of a `read`, nothing otherwise. Returns never. */
export type Grammar = Generator<Step, never, Buffer>;

/** What does not follow the protocol, or is not allowed: the socket ends. */
export class Unreadable extends Error {}

/** The most that a message may need to be held; the longest is a list of encodings. */
const mostHeld = 8 * 1024;
const nothing = Buffer.alloc(0);

export class Sieve {
  readonly #grammar: Grammar;
  #step: Step;
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Of the present `read`, and of the present `pass` or `drop`, what is missing. */
  #missing = 0;

  constructor(grammar: Grammar) {
    this.#grammar = grammar;
    this.#step = grammar.next(nothing).value;
    this.#missing = wanted(this.#step);
  }

  /** What goes on to the other side. Throws Unreadable. */
  feed(chunk: Buffer): Buffer[] {
    const out: Buffer[] = [];
    let rest = chunk;
    for (;;) {
      const step = this.#step;
      if (!('read' in step) && this.#held.length > 0) this.#release(step, out);
      if (this.#missing > 0 && rest.length === 0) return out;
      const taken = rest.subarray(0, this.#missing);
      rest = rest.subarray(taken.length);
      this.#missing -= taken.length;
      if ('read' in step) this.#hold(taken);
      else if ('pass' in step && taken.length > 0) out.push(taken);
      if (this.#missing > 0) return out;
      const given = 'read' in step ? Buffer.concat(this.#held).subarray(-step.read) : nothing;
      this.#step = this.#grammar.next(given).value;
      this.#missing = wanted(this.#step);
    }
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > mostHeld) throw new Unreadable('a message too long to judge');
    // A copy: the chunk it came in may be large, and is not kept for a few bytes of it.
    this.#held.push(Buffer.from(bytes));
  }

  #release(step: Exclude<Step, { read: number }>, out: Buffer[]): void {
    if ('pass' in step) out.push(step.instead ?? Buffer.concat(this.#held));
    this.#held = [];
    this.#heldBytes = 0;
  }
}

function wanted(step: Step): number {
  const bytes = 'read' in step ? step.read : 'pass' in step ? step.pass : step.drop;
  // A grammar that waits for nothing would turn for ever, and a length beyond this is none.
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw new Unreadable('a length that is none');
  return bytes;
}
