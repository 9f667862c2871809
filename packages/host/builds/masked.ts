// The end of what a step wrote, as its error tells it: bounded, readable, and without the values of secrets.

/** Of an error, in bytes. */
const longestError = 4_096;
/** The longest value a secret has, in bytes. */
const longestSecret = 4_096;
const mask = '***';
/** A line of a secret is masked by itself too, since programs print lines; shorter ones are too common. */
const shortestLine = 4;

/** Keeps the last of a stream: what an error tells, and enough before it to know a secret that begins there. */
export class Tail {
  #bytes = Buffer.alloc(0);

  add(chunk: Uint8Array): void {
    const both = Buffer.concat([this.#bytes, chunk]);
    this.#bytes = both.subarray(Math.max(0, both.length - longestError - longestSecret));
  }

  /** Its last 4 KiB. A secret that reaches into them is masked whole. */
  told(secrets: readonly string[]): string {
    const bytes = this.#bytes;
    const from = Math.max(0, bytes.length - longestError);
    const pieces: Buffer[] = [];
    let at = from;
    for (const [begin, end] of rangesOf(bytes, secrets)) {
      if (end <= from) continue;
      if (begin > at) pieces.push(bytes.subarray(at, begin));
      pieces.push(Buffer.from(mask));
      at = end;
    }
    pieces.push(bytes.subarray(at));
    const text = plain(decoded(Buffer.concat(pieces), from > 0)).trim();
    // Masks and what stands for bytes that are no text may have made it longer.
    const long = Buffer.from(text);
    return decoded(long.subarray(-longestError), long.length > longestError);
  }
}

/** Without the rest of a character that was cut in two. */
function decoded(bytes: Buffer, cut: boolean): string {
  const text = bytes.toString('utf8');
  return cut ? text.replace(/^\ufffd+/, '') : text;
}

// eslint-disable-next-line no-control-regex -- as below
const colours = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;
// eslint-disable-next-line no-control-regex -- control characters are what this takes away
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** It may be shown in a terminal, to which a guest must not speak. A line that was drawn over is a line. */
function plain(text: string): string {
  return text.replaceAll(colours, '').replaceAll(/\r\n?/g, '\n').replaceAll(controls, '');
}

/** Where secrets stand, in order; those that touch are one. */
function rangesOf(bytes: Buffer, secrets: readonly string[]): [begin: number, end: number][] {
  const found = secrets
    .flatMap((secret) => [secret, ...linesOf(secret)])
    .filter((value) => value !== '')
    .flatMap((value) => [...placesOf(bytes, Buffer.from(value))])
    .toSorted(([a], [b]) => a - b);
  const joined: [number, number][] = [];
  for (const [begin, end] of found) {
    const last = joined.at(-1);
    if (last !== undefined && begin <= last[1]) last[1] = Math.max(last[1], end);
    else joined.push([begin, end]);
  }
  return joined;
}

const linesOf = (secret: string): string[] =>
  secret
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.length >= shortestLine);

function* placesOf(bytes: Buffer, value: Buffer): Generator<[number, number]> {
  for (let at = bytes.indexOf(value); at >= 0; at = bytes.indexOf(value, at + 1)) {
    yield [at, at + value.length];
  }
}
