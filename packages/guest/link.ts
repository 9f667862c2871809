// The agent's end of the link: connects to the host for ever, and hands over what the host asks.

import { createConnection, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type Channel, ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import {
  type AgentEvent,
  type AgentHello,
  decodeMessage,
  encodeMessage,
  type GuestRequest,
  type HostHello,
  hostHello,
  request,
} from '@cubicle/contract/guest/messages.ts';
import { Mux } from '@cubicle/contract/guest/mux.ts';

export interface LinkOptions {
  readonly path: string;
  /** What the agent knows now. */
  hello(): AgentHello;
  greeted(host: HostHello): void;
  serve(channel: Channel, asked: GuestRequest): void;
}

/** A host daemon that restarts is away for a moment; nothing else happens on this socket meanwhile. */
/** Frames copy what they keep of it. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
const backoffMs = { first: 20, most: 500 };

export class Link {
  readonly #options: LinkOptions;
  #mux: Mux | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Lost when there is no host: the next greeting says it. */
  tell(event: AgentEvent): void {
    this.#mux?.event(encodeMessage(event));
  }

  async run(): Promise<never> {
    for (let wait = backoffMs.first; ; wait = Math.min(2 * wait, backoffMs.most)) {
      if (await this.#once()) wait = backoffMs.first;
      await setTimeout(wait);
    }
  }

  /** One connection, to its end. True when the host had greeted. */
  async #once(): Promise<boolean> {
    const socket = createConnection({
      path: this.#options.path,
      onread: {
        buffer: scratch,
        callback: (length) => {
          try {
            mux.feed(scratch.subarray(0, length));
          } catch (error) {
            socket.destroy(error as Error);
          }
          return true;
        },
      },
    });
    let greeted = false;
    const mux = new Mux('agent', wireOf(socket), {
      hello: (payload) => {
        greeted = true;
        this.#options.greeted(decodeMessage(payload, hostHello));
      },
      open: (channel, payload) => this.#options.serve(channel, decodeMessage(payload, request)),
    });
    socket.once('connect', () => {
      mux.hello(encodeMessage(this.#options.hello()));
      // From here on: what happens before the host answers is not in the greeting any more.
      this.#mux = mux;
    });
    socket.on('drain', () => mux.drained());
    // What went wrong does not matter: whatever it was, the agent connects again.
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('close', resolve));
    this.#mux = undefined;
    mux.close(new ChannelFailure('lost', 'the host went away'));
    return greeted;
  }
}

function wireOf(socket: Socket) {
  return {
    write(header: Buffer, payload: Buffer): boolean {
      socket.cork();
      socket.write(header);
      if (payload.length > 0) socket.write(payload);
      socket.uncork();
      return !socket.writableNeedDrain;
    },
  };
}
