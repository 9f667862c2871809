// One connection of an agent: the socket, its frames, and the bounds on what it may send unasked.

import type { Socket } from 'node:net';
import { type Channel, ChannelFailure } from '@cubicle/contract/guest/channel.ts';
import {
  type AgentEvent,
  agentEvent,
  type AgentHello,
  agentHello,
  decodeMessage,
  encodeMessage,
  type ForeignHello,
  foreignHello,
  type GuestRequest,
  type HostHello,
} from '@cubicle/contract/guest/messages.ts';
import { type Context, Mux } from '@cubicle/contract/guest/mux.ts';
import { ProtocolError } from '@cubicle/contract/guest/protocol-error.ts';
import { either } from '@cubicle/contract/guest/shape.ts';
import { guestProtocol } from '@cubicle/contract/guest/sizes.ts';
import type { Bucket } from './bucket.ts';

export interface LinkEars {
  hello(link: AgentLink, hello: AgentHello | ForeignHello): void;
  event(link: AgentLink, event: AgentEvent): void;
  closed(link: AgentLink, cause: Error): void;
}

const anyHello = either(foreignHello, agentHello);

export class AgentLink {
  readonly #socket: Socket;
  readonly #mux: Mux;
  #cause: Error = new ChannelFailure('lost', 'the agent went away');

  /** `budget`: how many events it may tell. */
  constructor(socket: Socket, ears: LinkEars, budget: Bucket) {
    this.#socket = socket;
    this.#mux = new Mux(
      'host',
      { write: (header, payload) => this.#write(header, payload) },
      {
        hello: (payload) => ears.hello(this, decodeMessage(payload, anyHello)),
        event: (payload) => {
          if (!budget.take()) throw new ProtocolError('flood', 'too many events');
          ears.event(this, decodeMessage(payload, agentEvent));
        },
      },
    );
    socket.on('data', (chunk: Buffer) => {
      try {
        this.#mux.feed(chunk);
      } catch (error) {
        this.end(error as Error);
      }
    });
    socket.on('drain', () => this.#mux.drained());
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#mux.close(this.#cause);
      ears.closed(this, this.#cause);
    });
  }

  /** The host's greeting: from here on it may ask. */
  welcome(known: HostHello['known']): void {
    this.#mux.hello(encodeMessage({ protocol: guestProtocol, known } satisfies HostHello));
  }

  /** Nothing when the agent has as many requests as it may. */
  ask(context: Context, request: GuestRequest): Channel | undefined {
    return this.#mux.open(context, encodeMessage(request));
  }

  ping(context: Context): Promise<void> {
    return this.#mux.ping(context);
  }

  /** Told its version, an agent of another makes way; it has a moment to hear it. */
  dismiss(): void {
    this.welcome([]);
    this.#socket.end();
  }

  /** At once, and for whoever waits with this cause. */
  end(cause: Error): void {
    this.#cause = cause;
    this.#mux.close(cause);
    this.#socket.destroy();
  }

  #write(header: Buffer, payload: Buffer): boolean {
    this.#socket.cork();
    this.#socket.write(header);
    if (payload.length > 0) this.#socket.write(payload);
    this.#socket.uncork();
    return !this.#socket.writableNeedDrain;
  }
}
