// RFB as tests speak it: a viewer's messages, and its handshake over a socket.

import assert from 'node:assert/strict';
import type { TestSocket } from './socket.ts';

export const version = Buffer.from('RFB 003.008\n');

export const messages = {
  pixelFormat: () =>
    Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]),
  encodings: (...list: number[]) => {
    const message = Buffer.alloc(4 + 4 * list.length);
    message.writeUInt8(2, 0);
    message.writeUInt16BE(list.length, 2);
    list.forEach((encoding, i) => message.writeInt32BE(encoding, 4 + 4 * i));
    return message;
  },
  updateRequest: (incremental: boolean, width: number, height: number) => {
    const message = Buffer.alloc(10);
    message.writeUInt8(3, 0);
    message.writeUInt8(incremental ? 1 : 0, 1);
    message.writeUInt16BE(width, 6);
    message.writeUInt16BE(height, 8);
    return message;
  },
  key: (down: boolean, keysym: number) => {
    const message = Buffer.alloc(8);
    message.writeUInt8(4, 0);
    message.writeUInt8(down ? 1 : 0, 1);
    message.writeUInt32BE(keysym, 4);
    return message;
  },
  pointer: (buttons: number, x: number, y: number) => {
    const message = Buffer.alloc(6);
    message.writeUInt8(5, 0);
    message.writeUInt8(buttons, 1);
    message.writeUInt16BE(x, 2);
    message.writeUInt16BE(y, 4);
    return message;
  },
  cutText: (text: string) => {
    const message = Buffer.alloc(8 + text.length, text, 'latin1');
    message.fill(0, 0, 8);
    message.writeUInt8(6, 0);
    message.writeUInt32BE(text.length, 4);
    message.write(text, 8, 'latin1');
    return message;
  },
};

export interface Screen {
  readonly width: number;
  readonly height: number;
  readonly name: string;
}

/** As far as ServerInit. */
export async function greet(socket: TestSocket): Promise<Screen> {
  assert.equal((await socket.take(12)).toString(), version.toString());
  socket.raw.send(version);
  const [count = 0] = await socket.take(1);
  assert.ok((await socket.take(count)).includes(1), 'security None is offered');
  socket.raw.send(Buffer.from([1]));
  assert.equal((await socket.take(4)).readUInt32BE(0), 0);
  socket.raw.send(Buffer.from([1]));
  const screen = await socket.take(24);
  const name = await socket.take(screen.readUInt32BE(20));
  return { width: screen.readUInt16BE(0), height: screen.readUInt16BE(2), name: name.toString() };
}
