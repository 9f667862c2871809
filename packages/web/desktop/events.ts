// The events tab: what happens on the computer, newest first.

import { type Place, socketUrl } from './place.ts';

interface Frame {
  readonly type: string;
  readonly at?: string;
  readonly cursor?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly detail?: string;
}

/** More than anybody reads; older ones go. */
const mostShown = 500;
const retryMs = 2_000;

export class EventsTab {
  readonly #place: Place;
  readonly #list: HTMLElement;
  #cursor = '';
  #begun = false;

  constructor(place: Place, list: HTMLElement) {
    this.#place = place;
    this.#list = list;
  }

  shown(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#connect();
  }

  #connect(): void {
    const url = new URL(socketUrl(this.#place, 'events'));
    if (this.#cursor !== '') url.searchParams.set('since', this.#cursor);
    const socket = new WebSocket(url);
    socket.addEventListener('message', ({ data }) => this.#hear(JSON.parse(String(data)) as Frame));
    socket.addEventListener('close', ({ code }) => {
      // From 4000 on the address itself is no longer good.
      if (code < 4_000) setTimeout(() => this.#connect(), retryMs);
    });
  }

  #hear(frame: Frame): void {
    this.#cursor = frame.cursor ?? this.#cursor;
    if (frame.type === 'hello' || frame.type === 'capabilities') return;
    const row = document.createElement('li');
    const [time, type, what] = ['time', 'b', 'span'].map((name) => document.createElement(name));
    if (time === undefined || type === undefined || what === undefined) return;
    time.textContent = new Date(frame.at ?? Date.now()).toLocaleTimeString();
    type.textContent = frame.type;
    what.textContent = summary(frame);
    row.append(time, type, what);
    this.#list.prepend(row);
    while (this.#list.childElementCount > mostShown) this.#list.lastElementChild?.remove();
  }
}

/** In a few words; a guest may say anything, so it is shown as text and cut. */
function summary({ data = {}, detail }: Frame): string {
  const told = [data['title'], data['path'], data['selection'], data['status'], data['exit_code']];
  const words = told.filter((word) => typeof word === 'string' || typeof word === 'number');
  return (detail ?? words.join(' · ')).slice(0, 200);
}
