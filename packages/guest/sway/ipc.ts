// Sway's own protocol: a question and its answer in JSON over a unix socket, and events for whoever
// subscribes (sway-ipc(7)).

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { within } from '../desktop/waiting.ts';

const kinds = { command: 0, subscribe: 2, outputs: 3, tree: 4 } as const;
type Kind = keyof typeof kinds;

const magic = Buffer.from('i3-ipc');
const headerBytes = magic.length + 8;
/** A tree has about 1 kB a window. */
const longest = 8 * 1024 * 1024;
const patienceMs = 5_000;

/** One question on a connection of its own: there is nothing to keep in order, and none to lose. */
export function askSway(
  context: Context,
  path: string,
  kind: Kind,
  payload = '',
): Promise<unknown> {
  return within(context, patienceMs, 'sway does not answer', async (hurried) => {
    const socket = await reach(hurried, path);
    try {
      socket.write(message(kind, payload));
      for await (const answer of messages(socket)) return answer;
      throw new DisplayError('lost', 'sway has ended');
    } finally {
      socket.destroy();
    }
  });
}

/** One turn for each event, until sway ends. What they say is not told: they only make somebody look. */
export async function* swayEvents(context: Context, path: string): AsyncGenerator<void> {
  const socket = await reach(context, path);
  try {
    socket.write(message('subscribe', '["window","workspace"]'));
    for await (const _ of messages(socket)) yield;
  } finally {
    socket.destroy();
  }
}

/** It is destroyed when the caller leaves. */
async function reach({ signal }: Context, path: string): Promise<Socket> {
  signal.throwIfAborted();
  const socket = createConnection({ path, signal });
  try {
    await once(socket, 'connect');
  } catch {
    socket.destroy();
    signal.throwIfAborted();
    throw new DisplayError('lost', 'sway cannot be reached');
  }
  socket.on('error', () => {});
  return socket;
}

function message(kind: Kind, payload: string): Buffer {
  const body = Buffer.from(payload);
  const header = Buffer.alloc(headerBytes);
  magic.copy(header);
  header.writeUInt32LE(body.length, magic.length);
  header.writeUInt32LE(kinds[kind], magic.length + 4);
  return Buffer.concat([header, body]);
}

async function* messages(socket: Socket): AsyncGenerator {
  let held: Buffer[] = [];
  let size = 0;
  let wanted = headerBytes;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    held.push(chunk);
    size += chunk.length;
    while (size >= wanted) {
      const bytes = Buffer.concat(held, size);
      const length = bytes.readUInt32LE(magic.length);
      if (length > longest) throw new DisplayError('lost', 'sway says too much');
      wanted = headerBytes + length;
      held = [bytes];
      if (size < wanted) break;
      yield parsed(bytes.subarray(headerBytes, wanted));
      held = [bytes.subarray(wanted)];
      size -= wanted;
      wanted = headerBytes;
    }
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new DisplayError('lost', 'sway says what is no JSON');
  }
}
