// An X server that lets everybody in and then says what a test wants it to.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** As Xvnc would: one screen of 640x480, one format of 32 bits, one visual. */
export function setupAnswer(): Buffer {
  const body = Buffer.alloc(32 + 8 + 40 + 8 + 24);
  body.writeUInt32LE(0x400000, 4);
  body.writeUInt32LE(0x1fffff, 8);
  body.writeUInt16LE(0, 16);
  body.writeUInt16LE(65_535, 18);
  body.set([1, 1, 0, 0, 32, 0, 8, 255], 20);
  body.set([24, 32, 32], 32);
  const screen = 40;
  body.writeUInt32LE(0x123, screen);
  body.writeUInt32LE(0x21, screen + 32);
  body.set([24, 1], screen + 38);
  body.set([24, 0, 1, 0], screen + 40);
  const visual = screen + 48;
  body.writeUInt32LE(0x21, visual);
  body.writeUInt32LE(0xff0000, visual + 8);
  body.writeUInt32LE(0x00ff00, visual + 12);
  body.writeUInt32LE(0x0000ff, visual + 16);
  const head = Buffer.from([1, 0, 11, 0, 0, 0, 0, 0]);
  head.writeUInt16LE(body.length / 4, 6);
  return Buffer.concat([head, body]);
}

export function reply(sequence: number, content = Buffer.alloc(24), claimed?: number): Buffer {
  const padded = Buffer.alloc(Math.max(24, content.length));
  content.copy(padded);
  const head = Buffer.alloc(8);
  head[0] = 1;
  head.writeUInt16LE(sequence & 0xffff, 2);
  head.writeUInt32LE(claimed ?? (padded.length - 24) / 4, 4);
  return Buffer.concat([head, padded]);
}

export class FakeServer {
  readonly path: string;
  readonly sockets: Socket[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /** `talk` is called with every connection, when it has been let in and asks for something. */
  static async of(
    t: TestContext,
    talk: (socket: Socket, asked: Buffer) => void,
    welcome: Buffer = setupAnswer(),
  ): Promise<FakeServer> {
    const folder = mkdtempSync(join(tmpdir(), 'cubicle-fake-x-'));
    const fake = new FakeServer(join(folder, 'X0'));
    const server = createServer((socket) => {
      fake.sockets.push(socket);
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write(welcome);
        socket.once('data', (asked) => talk(socket, asked));
      });
    });
    server.listen(fake.path);
    await once(server, 'listening');
    t.after(() => {
      for (const socket of fake.sockets) socket.destroy();
      server.close();
      rmSync(folder, { recursive: true });
    });
    return fake;
  }
}
