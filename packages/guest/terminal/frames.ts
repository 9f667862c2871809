// Frames between the agent and the holder of a session (holder.py): u8 type, u32 length, payload.

export type HolderFrame =
  | { readonly type: 'attached'; readonly pending: number }
  | { readonly type: 'output'; readonly bytes: Buffer }
  | { readonly type: 'taken'; readonly bytes: number }
  | { readonly type: 'detached' }
  | { readonly type: 'exited'; readonly code: number };

const headerSize = 5;
const mostOutput = 64 * 1024;
/** Payloads of everything but output. */
const small: Record<string, number> = { H: 4, T: 4, D: 0, X: 1 };

/** Cuts what a holder sends into frames. Output is handed on as it comes, in parts of a frame if need be. */
export class HolderDecoder {
  readonly #kept = Buffer.alloc(headerSize + 4);
  #filled = 0;
  /** How much of a small frame is kept before it means something. */
  #wanted = headerSize;
  /** Of an output frame, what has not come yet. */
  #output = 0;

  /** Throws for what no holder says. */
  *push(chunk: Buffer): Generator<HolderFrame, void, undefined> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#output > 0) {
        const bytes = chunk.subarray(at, at + this.#output);
        this.#output -= bytes.length;
        at += bytes.length;
        yield { type: 'output', bytes };
        continue;
      }
      const got = chunk.copy(this.#kept, this.#filled, at, at + this.#wanted - this.#filled);
      this.#filled += got;
      at += got;
      if (this.#filled === headerSize && this.#wanted === headerSize) this.#begin();
      if (this.#filled === this.#wanted) {
        const frame = this.#smallFrame();
        this.#filled = 0;
        this.#wanted = headerSize;
        if (frame !== undefined) yield frame;
      }
    }
  }

  #begin(): void {
    const type = String.fromCharCode(this.#kept[0] as number);
    const length = this.#kept.readUInt32BE(1);
    const expected = Object.hasOwn(small, type) ? small[type] : undefined;
    if (type === 'O' && length > 0 && length <= mostOutput) this.#output = length;
    else if (expected === length) this.#wanted = headerSize + length;
    else throw new Error(`a holder’s frame ${JSON.stringify(type)} of ${length} bytes`);
  }

  #smallFrame(): HolderFrame | undefined {
    switch (String.fromCharCode(this.#kept[0] as number)) {
      case 'H':
        return { type: 'attached', pending: this.#kept.readUInt32BE(headerSize) };
      case 'T':
        return { type: 'taken', bytes: this.#kept.readUInt32BE(headerSize) };
      case 'D':
        return { type: 'detached' };
      case 'X':
        return { type: 'exited', code: this.#kept[headerSize] as number };
      default:
        // The header of an output frame.
        return undefined;
    }
  }
}

export function attachFrame(cols: number, rows: number): Buffer {
  return sizeFrame('A', cols, rows);
}

export function resizeFrame(cols: number, rows: number): Buffer {
  return sizeFrame('S', cols, rows);
}

/** At most 64 KiB follow. */
export function inputHeader(length: number): Buffer {
  return header('I', length, 0);
}

function sizeFrame(type: string, cols: number, rows: number): Buffer {
  const frame = header(type, 4, 4);
  frame.writeUInt16BE(cols, headerSize);
  frame.writeUInt16BE(rows, headerSize + 2);
  return frame;
}

function header(type: string, length: number, room: number): Buffer {
  const frame = Buffer.alloc(headerSize + room);
  frame[0] = type.charCodeAt(0);
  frame.writeUInt32BE(length, 1);
  return frame;
}
