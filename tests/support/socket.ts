// A WebSocket as a caller opens it, or the answer that refused it.

import assert from 'node:assert/strict';
import { type ClientOptions, WebSocket } from 'ws';
import { until } from './until.ts';

export interface SocketRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of every shape
  readonly body: any;
}

export class TestSocket {
  readonly raw: WebSocket;
  /** All that came in binary messages, one after the other. */
  bytes: Buffer = Buffer.alloc(0);
  closed: { readonly code: number; readonly reason: string } | undefined;

  private constructor(raw: WebSocket) {
    this.raw = raw;
    raw.on('message', (data) => (this.bytes = Buffer.concat([this.bytes, data as Buffer])));
    raw.on('error', () => {});
    raw.on('close', (code, reason) => (this.closed = { code, reason: reason.toString() }));
  }

  static async tryOpen(
    url: string,
    options: ClientOptions = {},
  ): Promise<TestSocket | SocketRefusal> {
    const raw = new WebSocket(url, { perMessageDeflate: false, ...options });
    const { promise, resolve, reject } = Promise.withResolvers<TestSocket | SocketRefusal>();
    const socket = new TestSocket(raw);
    raw.once('open', () => resolve(socket));
    raw.once('error', reject);
    raw.once('unexpected-response', (_request, response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, body: JSON.parse(text) });
      });
    });
    return promise;
  }

  static async open(url: string, options?: ClientOptions): Promise<TestSocket> {
    const opened = await TestSocket.tryOpen(url, options);
    assert.ok(opened instanceof TestSocket, JSON.stringify(opened));
    return opened;
  }

  static async refused(url: string, options?: ClientOptions): Promise<SocketRefusal> {
    const refused = await TestSocket.tryOpen(url, options);
    assert.ok(!(refused instanceof TestSocket), 'it was opened');
    return refused;
  }

  /** Waits for so many bytes and takes them. */
  async take(length: number): Promise<Buffer> {
    await until(`${length} bytes came`, () => {
      if (this.closed) assert.fail(`closed: ${this.closed.code} ${this.closed.reason}`);
      return this.bytes.length >= length;
    });
    const taken = this.bytes.subarray(0, length);
    this.bytes = this.bytes.subarray(length);
    return taken;
  }

  async closing(): Promise<{ readonly code: number; readonly reason: string }> {
    return until('it is closed', () => this.closed);
  }

  close(): void {
    this.raw.terminate();
  }
}
