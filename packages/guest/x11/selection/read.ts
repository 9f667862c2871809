// Reads a selection as text: asks its owner, who puts it on a window of ours, at once or piece by piece.
// Every read has a window of its own, so that what comes too late for one does not reach another.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import { atoms, predefined } from '../protocol/atoms.ts';
import type { Connection } from '../protocol/connection.ts';
import { EventQueue } from '../protocol/event-queue.ts';
import { createWindow, destroyWindow, eventMasks } from '../protocol/own-window.ts';
import { deleteProperty, type Property, readProperty } from '../protocol/properties.ts';
import { request } from '../protocol/request.ts';
import { DisplayError } from '../../desktop/trouble.ts';
import { within } from '../../desktop/waiting.ts';
import { eventTypes, propertyChange, typeOf } from './events.ts';

/** Between two signs of life of the owner's. */
const patienceMs = 3_000;
/** When it is worth a look whether the owner is still the same. */
const lookMs = 250;
const mostAttempts = 4;
/** A text in crumbs is read no further. */
const mostPieces = 4_096;
const currentTime = 0;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

export async function selectionOwner(
  context: Context,
  connection: Connection,
  selection: number,
): Promise<number> {
  return connection.ask(context, request(23, 0, selection), (reply) => reply.readUInt32LE(8));
}

/** Empty without an owner or when it has no text. Trouble `too_large` beyond `most` bytes: never cut. */
export async function readSelection(
  context: Context,
  connection: Connection,
  selection: number,
  most: number,
): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readOnce(context, connection, selection, most);
    } catch (error) {
      const changed = error instanceof DisplayError && error.trouble === 'contention';
      if (!changed || attempt === mostAttempts) throw error;
    }
  }
}

async function readOnce(
  context: Context,
  connection: Connection,
  selection: number,
  most: number,
): Promise<string> {
  const { UTF8_STRING } = await atoms(context, connection, ['UTF8_STRING']);
  const owner = await selectionOwner(context, connection, selection);
  if (owner === 0) return '';
  const wanted = { selection, owner, most };
  const modern = await convert(context, connection, { ...wanted, target: UTF8_STRING });
  if (modern !== undefined) return utf8.decode(modern);
  const old = await convert(context, connection, { ...wanted, target: predefined.STRING });
  return old?.toString('latin1') ?? '';
}

interface Wanted {
  readonly selection: number;
  readonly owner: number;
  readonly target: number;
  readonly most: number;
}

/** Nothing when the owner has it in no such form. */
async function convert(
  context: Context,
  connection: Connection,
  { selection, owner, target, most }: Wanted,
): Promise<Buffer | undefined> {
  const { CUBICLE_SELECTION: property, INCR } = await atoms(context, connection, [
    'CUBICLE_SELECTION',
    'INCR',
  ]);
  const window = createWindow(connection, eventMasks.propertyChange);
  const events = new EventQueue(connection, (event) => {
    if (typeOf(event) === eventTypes.selectionNotify) return event.readUInt32LE(8) === window;
    if (typeOf(event) !== eventTypes.propertyNotify) return false;
    const change = propertyChange(event);
    return change.window === window && change.property === property && !change.deleted;
  });
  try {
    connection.send(request(24, 0, window, selection, target, property, currentTime));
    const reading = new Reading(connection, window, property, events);
    if (!(await reading.answered(context, selection, owner))) return undefined;
    const first = await reading.take(context, most);
    if (first.type !== INCR) return first.format === 8 ? first.value : undefined;
    return await reading.pieces(context, most);
  } finally {
    events.stop();
    destroyWindow(connection, window);
  }
}

class Reading {
  readonly #connection: Connection;
  readonly #window: number;
  readonly #property: number;
  readonly #events: EventQueue;

  constructor(connection: Connection, window: number, property: number, events: EventQueue) {
    this.#connection = connection;
    this.#window = window;
    this.#property = property;
    this.#events = events;
  }

  /** False when the owner refuses. One that has lost the selection meanwhile may never answer. */
  async answered(context: Context, selection: number, owner: number): Promise<boolean> {
    for (let waited = 0; ; waited += lookMs) {
      try {
        const event = await this.#await(context, eventTypes.selectionNotify, lookMs);
        return event.readUInt32LE(20) !== 0;
      } catch (error) {
        const silent = error instanceof DisplayError && error.trouble === 'silent';
        if (!silent || waited >= patienceMs) throw error;
        if ((await selectionOwner(context, this.#connection, selection)) !== owner) {
          throw new DisplayError('contention', 'the selection changed hands', { cause: error });
        }
      }
    }
  }

  /** That it is taken away tells the owner to go on. */
  async take(context: Context, most: number): Promise<Property> {
    const found = await readProperty(context, this.#connection, this.#window, this.#property, most);
    deleteProperty(this.#connection, this.#window, this.#property);
    return found;
  }

  /** An empty piece is the end. */
  async pieces(context: Context, most: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    let size = 0;
    for (let count = 0; count < mostPieces; count += 1) {
      await this.#await(context, eventTypes.propertyNotify);
      const { value } = await this.take(context, most - size);
      if (value.length === 0) return Buffer.concat(pieces);
      pieces.push(value);
      size += value.length;
    }
    throw new DisplayError('too_large', 'a selection in too many pieces');
  }

  #await(context: Context, type: number, ms = patienceMs): Promise<Buffer> {
    return within(context, ms, 'the owner of the selection is silent', async (own) => {
      for (;;) {
        const event = await this.#events.next(own);
        if (typeOf(event) === type) return event;
      }
    });
  }
}
