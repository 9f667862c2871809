// Cuts what the X server sends into packets. Nothing is kept but what somebody waits for: the rest is
// counted and dropped as it comes, however long it claims to be.

export interface PacketReader {
  /** How many bytes follow this head, and whether anybody wants them. */
  measure(head: Buffer): { readonly more: number; readonly wanted: boolean };
  /** All of it, or its head alone when nobody wanted more. Valid during the call only. */
  packet(packet: Buffer): void;
}

/** The first packet is the answer to the greeting, the only one with a shorter head. */
const greetingHead = 8;
const packetHead = 32;

export class Packets {
  readonly #reader: PacketReader;
  readonly #head = Buffer.alloc(packetHead);
  #headSize = greetingHead;
  #filled = 0;
  /** The packet under way when its head has been read. */
  #packet: Buffer | undefined;
  #dropping = 0;

  constructor(reader: PacketReader) {
    this.#reader = reader;
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#dropping > 0) at += this.#drop(chunk.length - at);
      else at += this.#take(chunk, at);
    }
  }

  #drop(most: number): number {
    const dropped = Math.min(most, this.#dropping);
    this.#dropping -= dropped;
    if (this.#dropping === 0) this.#finish(this.#head);
    return dropped;
  }

  #take(chunk: Buffer, at: number): number {
    const target = this.#packet ?? this.#head.subarray(0, this.#headSize);
    const taken = chunk.copy(target, this.#filled, at);
    this.#filled += taken;
    if (this.#filled < target.length) return taken;
    if (this.#packet === undefined) this.#begin(target);
    else this.#finish(target);
    return taken;
  }

  #begin(head: Buffer): void {
    const { more, wanted } = this.#reader.measure(head);
    if (more === 0) {
      this.#finish(head);
    } else if (wanted) {
      this.#packet = Buffer.allocUnsafeSlow(head.length + more);
      head.copy(this.#packet);
    } else {
      this.#dropping = more;
    }
  }

  #finish(packet: Buffer): void {
    this.#packet = undefined;
    this.#filled = 0;
    this.#headSize = packetHead;
    this.#reader.packet(packet);
  }
}
