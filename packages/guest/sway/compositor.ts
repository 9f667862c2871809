// A connection to the compositor with the two devices that it lets programs make: a pointer and a keyboard.
// They are there as long as the connection is; when it is lost the compositor lets go of what they held.

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import type { Context } from '@cubicle/contract/guest/mux.ts';
import { DisplayError } from '../desktop/trouble.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { within } from '../desktop/waiting.ts';
import program from './courier.py';
import type { Programs } from './programs.ts';
import { encode, type Message, Messages, readText } from './wire.ts';

/** The system's own, whatever somebody put before it. */
const python = '/usr/bin/python3';
const patienceMs = 5_000;

const display = { id: 1, sync: 0, getRegistry: 1, error: 0, deleteId: 1 } as const;
const registry = { bind: 0, global: 0 } as const;
const interfaces = {
  seat: 'wl_seat',
  pointers: 'zwlr_virtual_pointer_manager_v1',
  keyboards: 'zwp_virtual_keyboard_manager_v1',
} as const;
type Global = keyof typeof interfaces;
const create = 0;

export class Compositor {
  readonly #courier: ChildProcessWithoutNullStreams;
  readonly #messages = new Messages();
  readonly #freeIds: number[] = [];
  readonly #callbacks = new Map<number, () => void>();
  readonly #globals = new Map<Global, number>();
  readonly #over = Promise.withResolvers<never>();
  #nextId = 2;
  #registry = 0;
  #lost = false;
  #pointer = 0;
  #keyboard = 0;

  private constructor(programs: Programs) {
    this.#over.promise.catch(() => {});
    this.#courier = programs.start([python, '-I', '-S', '-c', program]);
    this.#courier.stdout.on('data', (chunk: Buffer) => this.#hear(chunk));
    this.#courier.once('close', () => this.#lose('the compositor is gone'));
  }

  static async open(programs: Programs): Promise<Compositor> {
    const compositor = new Compositor(programs);
    try {
      await compositor.#begin();
      return compositor;
    } catch (error) {
      compositor.close();
      throw error;
    }
  }

  get lost(): boolean {
    return this.#lost;
  }

  pointer(opcode: number, ...values: number[]): void {
    this.#send(encode(this.#pointer, opcode, ...values));
  }

  keyboard(opcode: number, ...values: number[]): void {
    this.#send(encode(this.#keyboard, opcode, ...values));
  }

  /** The file goes along with the message, where the protocol has a place for it that takes no bytes. */
  keyboardWithFile(file: Buffer, opcode: number, ...values: number[]): void {
    this.#send(encode(this.#keyboard, opcode, ...values), file);
  }

  /** Resolves when the compositor has carried out all that was sent before. */
  settled(context: Context): Promise<void> {
    return within(context, patienceMs, 'the compositor does not answer', async (hurried) => {
      const done = Promise.withResolvers<void>();
      const id = this.#newId();
      this.#callbacks.set(id, done.resolve);
      this.#send(encode(display.id, display.sync, id));
      await unlessAborted(hurried, Promise.race([done.promise, this.#over.promise]));
    });
  }

  close(): void {
    this.#lose('the agent closed it');
  }

  async #begin(): Promise<void> {
    const context = { signal: AbortSignal.timeout(patienceMs) };
    this.#registry = this.#newId();
    this.#send(encode(display.id, display.getRegistry, this.#registry));
    await this.settled(context);
    const seat = this.#bind('seat');
    const pointers = this.#bind('pointers');
    const keyboards = this.#bind('keyboards');
    this.#pointer = this.#newId();
    this.#send(encode(pointers, create, seat, this.#pointer));
    this.#keyboard = this.#newId();
    this.#send(encode(keyboards, create, seat, this.#keyboard));
    await this.settled(context);
  }

  #bind(global: Global): number {
    const name = this.#globals.get(global);
    if (name === undefined) throw new DisplayError('refused', `no ${interfaces[global]}`);
    const id = this.#newId();
    this.#send(encode(this.#registry, registry.bind, name, interfaces[global], 1, id));
    return id;
  }

  #newId(): number {
    return this.#freeIds.pop() ?? this.#nextId++;
  }

  #send(messages: Buffer, file: Buffer = Buffer.alloc(0)): void {
    if (this.#lost) throw new DisplayError('lost', 'the compositor is gone');
    const header = Buffer.alloc(8);
    header.writeUInt32LE(file.length, 0);
    header.writeUInt32LE(messages.length, 4);
    this.#courier.stdin.write(Buffer.concat([header, file, messages]));
  }

  #hear(chunk: Buffer): void {
    try {
      for (const message of this.#messages.feed(chunk)) this.#take(message);
    } catch {
      this.#lose('the compositor says what is no Wayland');
    }
  }

  #take({ object, opcode, body }: Message): void {
    if (object === display.id && opcode === display.error) {
      this.#lose(`the compositor refuses: ${readText(body, 8).value}`);
    } else if (object === display.id && opcode === display.deleteId) {
      this.#freeIds.push(body.readUInt32LE(0));
    } else if (object === this.#registry && opcode === registry.global) {
      const { value } = readText(body, 4);
      for (const global of Object.keys(interfaces) as Global[]) {
        if (interfaces[global] === value) this.#globals.set(global, body.readUInt32LE(0));
      }
    } else {
      this.#callbacks.get(object)?.();
      this.#callbacks.delete(object);
    }
  }

  #lose(why: string): void {
    if (this.#lost) return;
    this.#lost = true;
    this.#over.reject(new DisplayError('lost', why));
    this.#courier.kill('SIGKILL');
  }
}
