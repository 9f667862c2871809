// A connection that sends whatever bytes it is told to and reads strictly: an answer is well-formed
// HTTP/1.1 or the test fails. Everything that waits gives up at a deadline, which is how a hang is seen.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';

/** Far beyond what any answer takes on a busy machine; only a hang lasts this long. */
const hangMs = 90_000;

export interface RawAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** The values of a header, by its name in lower case. */
  readonly all: (name: string) => string[];
}

export class RawConnection {
  readonly socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #ended = false;
  /** A reset, or a write to a connection that the other side has closed. */
  #failure: Error | undefined;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay();
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    socket.on('end', () => {
      this.#ended = true;
      this.#wake();
    });
    socket.on('error', (error) => {
      this.#failure = error;
      this.#wake();
    });
    socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Half-open, so that a side which has said everything can still be answered.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, resolve);
    socket.once('error', reject);
    const connection = new RawConnection(socket);
    await before(promise, 'connecting');
    socket.off('error', reject);
    return connection;
  }

  write(bytes: Buffer | string): boolean {
    return this.#failure === undefined && this.socket.writable && this.socket.write(bytes);
  }

  /** Says that nothing more will come. */
  finish(): void {
    if (this.socket.writable) this.socket.end();
  }

  /** Goes away without a word. */
  vanish(): void {
    this.socket.destroy();
  }

  /** Goes away so that the other side's next word to it fails. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  get closed(): boolean {
    return this.#ended;
  }

  /** What broke the connection, where something did. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Bytes that nobody has read yet. */
  get unread(): Buffer {
    return this.#received;
  }

  /** The next answer, or undefined when the connection ended before one began. */
  async answer(bodiless = false): Promise<RawAnswer | undefined> {
    const head = await this.#upTo('\r\n\r\n');
    if (head === undefined) {
      assert.equal(this.#received.length, 0, `an answer broke off: ${shown(this.#received)}`);
      return undefined;
    }
    const [statusLine = '', ...lines] = head.split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [ -~]*$/.exec(statusLine)?.[1]);
    assert.ok(status >= 100 && status <= 599, `no status line: ${JSON.stringify(statusLine)}`);
    const headers = lines.map((line) => {
      const match = /^([!#$%&'*+.^_`|~\w-]+): ([\t -~\u0080-\u00ff]*)$/.exec(line);
      assert.ok(match, `no header line: ${JSON.stringify(line)}`);
      return [(match[1] as string).toLowerCase(), match[2] as string] as const;
    });
    const all = (name: string) =>
      headers.filter(([known]) => known === name).map(([, value]) => value);
    const none = bodiless || status < 200 || status === 204 || status === 304;
    return { status, headers, all, body: none ? Buffer.alloc(0) : await this.#body(all) };
  }

  /** Waits until the other side has closed, and gives what it still said. */
  async end(): Promise<Buffer> {
    while (!this.#ended) await this.#more('the connection to close');
    return this.#received;
  }

  async #body(all: (name: string) => string[]): Promise<Buffer> {
    const [length] = all('content-length');
    if (length !== undefined) {
      assert.deepEqual(all('content-length'), [length]);
      assert.deepEqual(all('transfer-encoding'), []);
      assert.match(length, /^\d+$/);
      return this.#exactly(Number(length));
    }
    assert.deepEqual(all('transfer-encoding'), ['chunked'], 'an answer without a length');
    const chunks: Buffer[] = [];
    for (;;) {
      const line = await this.#upTo('\r\n');
      assert.match(line ?? '', /^[0-9a-f]+$/i, 'a chunk’s size');
      const chunk = await this.#exactly(Number.parseInt(line ?? '', 16) + 2);
      assert.equal(chunk.subarray(-2).toString('latin1'), '\r\n');
      if (chunk.length === 2) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, -2));
    }
  }

  async #upTo(mark: string): Promise<string | undefined> {
    for (;;) {
      const at = this.#received.indexOf(mark, 0, 'latin1');
      if (at !== -1) {
        const text = this.#received.subarray(0, at).toString('latin1');
        this.#received = this.#received.subarray(at + mark.length);
        return text;
      }
      if (this.#ended) return undefined;
      await this.#more('an answer');
    }
  }

  async #exactly(length: number): Promise<Buffer> {
    while (this.#received.length < length) {
      assert.ok(
        !this.#ended,
        `a body broke off (${this.#failure?.message}): ${shown(this.#received)}`,
      );
      await this.#more('the rest of an answer');
    }
    const bytes = this.#received.subarray(0, length);
    this.#received = this.#received.subarray(length);
    return bytes;
  }

  async #more(what: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await before(promise, what);
  }
}

/** Fails when it takes as long as only a hang does. */
async function before<T>(promise: Promise<T>, what: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited ${hangMs} ms for ${what}`)), hangMs);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Bytes as a person can read and repeat them; long runs of one character are told, not written out. */
export function shown(bytes: Buffer, most = 3_000): string {
  const text = JSON.stringify(bytes.subarray(0, most).toString('latin1'));
  const short = text.replaceAll(
    /(.)\1{40,}/g,
    (run, one: string) => `${one}…(${run.length} times)…`,
  );
  return bytes.length > most ? `${short}… (${bytes.length} bytes)` : short;
}
