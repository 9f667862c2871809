// Owns a selection: serves its text to every program that asks, until another takes it.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms, predefined } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { EventQueue } from '../protocol/event-queue.ts';
import { createWindow, destroyWindow, eventMasks } from '../protocol/own-window.ts';
import { touchProperty, words, writeProperty } from '../protocol/properties.ts';
import { quad, request } from '../protocol/request.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { within } from '../../desktop/waiting.ts';
import {
  eventTypes,
  propertyChange,
  type SelectionRequest,
  selectionRequest,
  typeOf,
} from './events.ts';
import { selectionOwner } from './read.ts';
import { Transfers } from './transfers.ts';

const names = [
  'TARGETS',
  'TIMESTAMP',
  'TEXT',
  'UTF8_STRING',
  'text/plain;charset=utf-8',
  'INCR',
  'CUBICLE_TIME',
] as const;
type Known = Record<(typeof names)[number], number>;

/** Longer texts go piece by piece. A request holds four times as much. */
const atOnce = 65_536;
const clockMs = 5_000;
const none = 0;

export class SelectionOwner {
  readonly #connection: Connection;
  readonly #selection: number;
  readonly #known: Known;
  readonly #window: number;
  readonly #text: string;
  readonly #bytes: Buffer;
  readonly #transfers: Transfers;
  readonly #stop: () => void;
  #since = 0;
  #lost = false;

  /** Resolves when the selection is ours. */
  static async take(
    context: Context,
    connection: Connection,
    selection: number,
    text: string,
  ): Promise<SelectionOwner> {
    const known = await atoms(context, connection, names);
    const owner = new SelectionOwner(connection, selection, known, text);
    try {
      await owner.#take(context);
      return owner;
    } catch (error) {
      owner.release();
      throw error;
    }
  }

  private constructor(connection: Connection, selection: number, known: Known, text: string) {
    this.#connection = connection;
    this.#selection = selection;
    this.#known = known;
    this.#text = text;
    this.#bytes = Buffer.from(text);
    this.#window = createWindow(connection, eventMasks.propertyChange);
    this.#transfers = new Transfers(connection, known.INCR);
    this.#stop = connection.listen(
      (event) => this.#heard(event),
      () => this.#lose(),
    );
  }

  /** Whether another program has taken it, or the display is gone. */
  get lost(): boolean {
    return this.#lost;
  }

  /** The selection has no owner afterwards, unless another has taken it. */
  release(): void {
    if (this.#connection.lost) return;
    this.#lose();
    // What it owned has no owner then.
    destroyWindow(this.#connection, this.#window);
  }

  async #take(context: Context): Promise<void> {
    const connection = this.#connection;
    this.#since = await this.#clock(context);
    connection.send(request(22, 0, this.#window, this.#selection, this.#since));
    if ((await selectionOwner(context, connection, this.#selection)) !== this.#window) {
      throw new DisplayError('contention', 'another program took the selection');
    }
  }

  /** The display's time: a change of a property tells it. */
  async #clock(context: Context): Promise<number> {
    const { CUBICLE_TIME } = this.#known;
    const events = new EventQueue(
      this.#connection,
      (event) =>
        typeOf(event) === eventTypes.propertyNotify &&
        propertyChange(event).window === this.#window,
    );
    try {
      touchProperty(this.#connection, this.#window, CUBICLE_TIME, predefined.INTEGER);
      const event = await within(context, clockMs, 'the display is silent', (own) =>
        events.next(own),
      );
      return propertyChange(event).time;
    } finally {
      events.stop();
    }
  }

  #heard(event: Buffer): void {
    const type = typeOf(event);
    if (type === eventTypes.selectionClear) {
      if (event.readUInt32LE(8) === this.#window) this.#lose();
    } else if (type === eventTypes.selectionRequest) {
      const asked = selectionRequest(event);
      if (asked.owner === this.#window && asked.selection === this.#selection) this.#serve(asked);
    }
  }

  #serve(asked: SelectionRequest): void {
    const served = this.#put(asked);
    const { time, requestor, selection, target } = asked;
    const property = served ? asked.property : none;
    const notify = words(
      quad(eventTypes.selectionNotify),
      time,
      requestor,
      selection,
      target,
      property,
      0,
      0,
    );
    this.#connection.send(request(25, 0, requestor, 0, notify));
  }

  /** False for a form that there is none in. */
  #put({ requestor, property, target }: SelectionRequest): boolean {
    const known = this.#known;
    if (target === known.TARGETS) {
      const value = words(known.TARGETS, known.TIMESTAMP, ...this.#forms());
      writeProperty(this.#connection, requestor, property, {
        type: predefined.ATOM,
        format: 32,
        value,
      });
      return true;
    }
    if (target === known.TIMESTAMP) {
      const value = words(this.#since);
      const { INTEGER: type } = predefined;
      writeProperty(this.#connection, requestor, property, { type, format: 32, value });
      return true;
    }
    if (!this.#forms().includes(target)) return false;
    return this.#putText(requestor, property, target);
  }

  #putText(requestor: number, property: number, target: number): boolean {
    const latin = target === predefined.STRING;
    // Programs that ask for any text are told which it is.
    const type = target === this.#known.TEXT ? this.#known.UTF8_STRING : target;
    const value = latin ? Buffer.from(this.#text, 'latin1') : this.#bytes;
    if (value.length > atOnce) return this.#transfers.begin({ requestor, property, type, value });
    writeProperty(this.#connection, requestor, property, { type, format: 8, value });
    return true;
  }

  /** As STRING there are only the characters of Latin-1. */
  #forms(): number[] {
    const { UTF8_STRING, TEXT, 'text/plain;charset=utf-8': plain } = this.#known;
    // eslint-disable-next-line no-control-regex -- all of Latin-1 is meant
    const latin = /^[\u0000-\u00ff]*$/.test(this.#text);
    return [UTF8_STRING, plain, TEXT, ...(latin ? [predefined.STRING] : [])];
  }

  #lose(): void {
    this.#lost = true;
    this.#transfers.stop();
    this.#stop();
  }
}
