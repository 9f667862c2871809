// The desktop's display as callers hold it: connects when it is first needed, and again when it was lost.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { Connection, type ConnectionOptions } from './connection.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';

export class Display {
  readonly #options: ConnectionOptions;
  #connecting: Promise<Connection> | undefined;
  #connection: Connection | undefined;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The connection that there is, or a new one. All callers share it. */
  async connection(context: Context): Promise<Connection> {
    context.signal.throwIfAborted();
    if (this.#closed) throw new DisplayError('lost', 'the agent closed the display');
    if (this.#connection?.lost === false) return this.#connection;
    this.#connecting ??= this.#connect();
    return unlessAborted(context, this.#connecting);
  }

  close(): void {
    this.#closed = true;
    this.#connection?.close();
  }

  async #connect(): Promise<Connection> {
    try {
      this.#connection = await Connection.open(this.#options);
      if (this.#closed) this.#connection.close();
      return this.#connection;
    } finally {
      this.#connecting = undefined;
    }
  }
}
