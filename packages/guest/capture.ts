// One output stream of a command: drained for as long as anybody holds its other end, so that no command
// ever waits for a reader, and kept in a nameless file up to a cap. What is beyond is counted as cut.

import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { limits } from '@cubicle/contract/limits.ts';
import type { OutputRoom } from './output-room.ts';
import { errorCode } from './refused.ts';
import { randomName } from './random-name.ts';

/** Shared by all pipes: what is read into it is dealt with before the next read. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
/** The most a pipe holds, if its user made it as large as an ordinary user may. */
const pipeCapacity = 1024 * 1024;

export class Capture {
  readonly #folder: string;
  readonly #room: OutputRoom;
  readonly #fd: number;
  readonly #pipe: Socket;
  readonly closed: Promise<void>;
  #file: number | undefined;
  #keeping = true;
  #size = 0;
  #truncated = false;
  /** Why less was kept than the cap allows. */
  #trouble: string | undefined;

  /** Takes over the reading end of a pipe whose writing end is open. */
  constructor(fd: number, folder: string, room: OutputRoom) {
    this.#folder = folder;
    this.#room = room;
    this.#fd = fd;
    this.#pipe = new Socket({
      fd,
      readable: true,
      writable: false,
      onread: {
        buffer: scratch,
        callback: (length) => {
          this.#keep(length);
          return true;
        },
      },
    });
    this.#pipe.on('error', () => this.#pipe.destroy());
    this.closed = new Promise((resolve) => {
      this.#pipe.once('close', () => resolve());
    });
  }

  get size(): number {
    return this.#size;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Reads what a process wrote before it ended, and of what others write no more than may be that. */
  catchUp(): void {
    for (let read = 0; read < pipeCapacity && !this.#pipe.destroyed;) {
      try {
        const length = readSync(this.#fd, scratch);
        if (length === 0) return;
        this.#keep(length);
        read += length;
      } catch {
        // EAGAIN: the pipe is empty and somebody holds it open.
        return;
      }
    }
  }

  /** Kept bytes from `offset`; 0 where they end. */
  read(buffer: Buffer, offset: number): number {
    const length = Math.min(buffer.length, this.#size - offset);
    if (length <= 0 || this.#file === undefined) return 0;
    return readSync(this.#file, buffer, 0, length, offset);
  }

  /** Keeps nothing that comes from here on; the pipe is still drained. */
  stopKeeping(): void {
    this.#keeping = false;
  }

  forget(): void {
    this.#keeping = false;
    this.#room.release(this.#size);
    this.#size = 0;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** After the first byte that is not kept none is: it would stand in the wrong place. */
  #keep(length: number): void {
    if (!this.#keeping) return;
    const within = Math.min(length, limits.execOutput - this.#size);
    const granted = this.#room.claim(within);
    if (granted < within) this.#trouble = 'no room is left for output';
    let written = 0;
    try {
      if (granted > 0) this.#file ??= namelessFile(this.#folder);
      while (this.#file !== undefined && written < granted) {
        const at = this.#size + written;
        written += writeSync(this.#file, scratch, written, granted - written, at);
      }
    } catch (error) {
      // The tmpfs is full.
      this.#trouble = `output could not be kept: ${errorCode(error)}`;
    }
    this.#room.release(granted - written);
    this.#size += written;
    if (written < length) {
      this.#truncated = true;
      this.#keeping = false;
    }
  }
}

/** Its memory goes with the agent, however that ends. */
export function namelessFile(folder: string): number {
  const path = join(folder, `file-${randomName(8)}`);
  const fd = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return fd;
}
