// A VNC server for the guest of a simulated computer: it greets, keeps what viewers say, and says what it
// is told.

import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { version } from './rfb.ts';
import type { TestAgent } from './simulated-host.ts';

const format = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);

export class VncServer {
  readonly viewers: Viewer[] = [];
  readonly #server: Server;
  readonly #ready: string;

  private constructor(server: Server, ready: string) {
    this.#server = server;
    this.#ready = ready;
    server.on('connection', (socket) => this.viewers.push(new Viewer(socket)));
  }

  /** With the word that the desktop is up. */
  static async in(agent: TestAgent): Promise<VncServer> {
    const path = agent.at('run/vnc.sock');
    rmSync(path, { force: true });
    const server = createServer();
    await once(server.listen(path), 'listening');
    const ready = agent.at('run/desktop-ready');
    writeFileSync(ready, '');
    return new VncServer(server, ready);
  }

  get last(): Viewer {
    return this.viewers.at(-1) as Viewer;
  }

  async stop(): Promise<void> {
    rmSync(this.#ready, { force: true });
    for (const { socket } of this.viewers) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

export class Viewer {
  readonly socket: Socket;
  /** All that it said after the greeting. */
  said: Buffer = Buffer.alloc(0);
  #greeted = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.write(version);
    socket.on('data', (chunk: Buffer) => {
      this.said = Buffer.concat([this.said, chunk]);
      this.#greet();
    });
  }

  get gone(): boolean {
    return this.socket.destroyed || this.socket.readableEnded;
  }

  #greet(): void {
    const steps = [
      [12, Buffer.from([1, 1])],
      [1, Buffer.alloc(4)],
      [1, init()],
    ] as const;
    for (let step = steps[this.#greeted]; step; step = steps[this.#greeted]) {
      const [length, answer] = step;
      if (this.said.length < length) return;
      this.said = this.said.subarray(length);
      this.socket.write(answer);
      this.#greeted += 1;
    }
  }
}

function init(): Buffer {
  const name = 'simulated';
  const size = Buffer.from([0, 4, 0, 2]);
  const length = Buffer.from([0, 0, 0, name.length]);
  return Buffer.concat([size, format, length, Buffer.from(name)]);
}

/** A message with one rectangle of raw pixels. */
export function rawUpdate(width: number, height: number): Buffer {
  const head = Buffer.alloc(16);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(width, 8);
  head.writeUInt16BE(height, 10);
  return Buffer.concat([head, Buffer.alloc(4 * width * height, 7)]);
}

export function serverCutText(text: string): Buffer {
  const head = Buffer.from([3, 0, 0, 0, 0, 0, 0, text.length]);
  return Buffer.concat([head, Buffer.from(text)]);
}
