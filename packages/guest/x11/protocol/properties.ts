// Properties of windows: how programs on a desktop tell each other things. Read and written in pieces, so
// that none makes a long reply or request.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { Connection } from './connection.ts';
import { quad, request } from './request.ts';
import { DisplayError } from '../../desktop/trouble.ts';

export interface Property {
  /** 0 when the window has no such property. */
  readonly type: number;
  /** Bits of an item: 8, 16 or 32. */
  readonly format: number;
  readonly value: Buffer;
}

/** Bytes of a piece. */
const piece = 65_536;
const anyType = 0;
const modes = { replace: 0, append: 2 } as const;

interface Piece extends Property {
  readonly left: number;
}

/** All of it; trouble `too_large` when it has more than `most` bytes, of which none but a piece is read. */
export async function readProperty(
  context: Context,
  connection: Connection,
  window: number,
  property: number,
  most: number,
): Promise<Property> {
  const first = await readPiece(context, connection, window, property, 0);
  const size = first.value.length + first.left;
  if (size > most) throw new DisplayError('too_large', `a property of ${size} bytes`);
  const pieces = [first.value];
  for (let at = first.value.length; at < size;) {
    const next = await readPiece(context, connection, window, property, at);
    // It was changed while it was read.
    if (next.value.length === 0 || at + next.value.length + next.left !== size) {
      throw new DisplayError('contention', 'a property changed while it was read');
    }
    pieces.push(next.value);
    at += next.value.length;
  }
  return { ...first, value: pieces.length === 1 ? first.value : Buffer.concat(pieces) };
}

/** The beginning of it, at most so many bytes. */
export async function readStart(
  context: Context,
  connection: Connection,
  window: number,
  property: number,
  most: number,
): Promise<Property> {
  return readPiece(context, connection, window, property, 0, most);
}

/** Items of 32 bits, at most so many of them. Nothing but a property of that format counts. */
export async function readWords(
  context: Context,
  connection: Connection,
  window: number,
  property: number,
  most: number,
): Promise<number[]> {
  const { format, value } = await readStart(context, connection, window, property, 4 * most);
  if (format !== 32) return [];
  const length = Math.min(most, Math.floor(value.length / 4));
  return Array.from({ length }, (_, i) => value.readUInt32LE(4 * i));
}

function readPiece(
  context: Context,
  connection: Connection,
  window: number,
  property: number,
  at: number,
  most = piece,
): Promise<Piece> {
  const length = Math.ceil(most / 4);
  const get = request(20, 0, window, property, anyType, at / 4, length);
  return connection.ask(context, get, decodePiece, 32 + 4 * length);
}

function decodePiece(reply: Buffer): Piece {
  const format = reply.readUInt8(1);
  const length = reply.readUInt32LE(16) * (format / 8);
  if (32 + length > reply.length) throw new RangeError('a property longer than its reply');
  return {
    format,
    type: reply.readUInt32LE(8),
    left: reply.readUInt32LE(12),
    value: reply.subarray(32, 32 + length),
  };
}

/** Asks for no confirmation. */
export function writeProperty(
  connection: Connection,
  window: number,
  property: number,
  { type, format, value }: Property,
): void {
  for (let at = 0; at === 0 || at < value.length; at += piece) {
    const part = value.subarray(at, at + piece);
    const mode = at === 0 ? modes.replace : modes.append;
    const items = part.length / (format / 8);
    connection.send(request(18, mode, window, property, type, quad(format), items, part));
  }
}

/** Makes the server tell the time: appends nothing. */
export function touchProperty(
  connection: Connection,
  window: number,
  property: number,
  type: number,
): void {
  connection.send(request(18, modes.append, window, property, type, quad(8), 0));
}

export function deleteProperty(connection: Connection, window: number, property: number): void {
  connection.send(request(19, 0, window, property));
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value >>> 0, 4 * i);
  return bytes;
}
