// Texts that go to other programs piece by piece: the next when the one before was taken away.

import type { Connection } from '../protocol/connection.ts';
import { eventMasks, watchWindow } from '../protocol/own-window.ts';
import { words, writeProperty } from '../protocol/properties.ts';
import { eventTypes, propertyChange, typeOf } from './events.ts';

interface Transfer {
  readonly requestor: number;
  readonly property: number;
  readonly type: number;
  readonly value: Buffer;
}

interface UnderWay extends Transfer {
  at: number;
  timer: NodeJS.Timeout;
}

const piece = 65_536;
const most = 16;
/** A program that does not take a piece for so long gets no more. */
const patienceMs = 10_000;

export class Transfers {
  readonly #connection: Connection;
  readonly #incr: number;
  readonly #underWay = new Map<string, UnderWay>();
  readonly #stop: () => void;

  constructor(connection: Connection, incr: number) {
    this.#connection = connection;
    this.#incr = incr;
    this.#stop = connection.listen((event) => {
      if (typeOf(event) !== eventTypes.propertyNotify) return;
      const change = propertyChange(event);
      const transfer = this.#underWay.get(`${change.window}:${change.property}`);
      if (change.deleted && transfer !== undefined) this.#next(transfer);
    });
  }

  /** False when there are too many already. */
  begin(transfer: Transfer): boolean {
    const { requestor, property, value } = transfer;
    const key = keyOf(transfer);
    if (this.#underWay.size >= most || this.#underWay.has(key)) return false;
    watchWindow(this.#connection, requestor, eventMasks.propertyChange);
    const size = { type: this.#incr, format: 32, value: words(value.length) };
    writeProperty(this.#connection, requestor, property, size);
    this.#underWay.set(key, { ...transfer, at: 0, timer: this.#patience(key) });
    return true;
  }

  stop(): void {
    this.#stop();
    for (const { timer } of this.#underWay.values()) clearTimeout(timer);
    this.#underWay.clear();
  }

  /** After the last piece comes an empty one. */
  #next(transfer: UnderWay): void {
    const key = keyOf(transfer);
    const { requestor, property, type, value, at } = transfer;
    clearTimeout(transfer.timer);
    writeProperty(this.#connection, requestor, property, {
      type,
      format: 8,
      value: value.subarray(at, at + piece),
    });
    transfer.at += piece;
    if (at >= value.length) this.#underWay.delete(key);
    else transfer.timer = this.#patience(key);
  }

  #patience(key: string): NodeJS.Timeout {
    return setTimeout(() => this.#underWay.delete(key), patienceMs);
  }
}

function keyOf({ requestor, property }: Transfer): string {
  return `${requestor}:${property}`;
}
