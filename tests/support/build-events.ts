// A build's events as a client's library reads them.

import { EventSource } from 'eventsource';
import { until } from './until.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests look into events of any shape
type Data = any;

export class BuildEvents {
  readonly all: { type: string; data: Data }[] = [];
  /** Everything that came, comments too. */
  text = '';
  requestId = '';
  readonly #source: EventSource;
  #over = false;

  private constructor(baseUrl: string, key: string, id: string) {
    this.#source = new EventSource(`${baseUrl}/builds/${id}/events`, {
      fetch: async (url, init) => {
        const headers = { ...init.headers, authorization: `Bearer ${key}` };
        const answer = await fetch(url, { ...init, headers });
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
        this.requestId = answer.headers.get('x-request-id') ?? '';
        const [seen, read] = (answer.body as ReadableStream<Uint8Array>).tee();
        void this.#see(seen);
        return { ...pickOf(answer), body: read };
      },
    });
    for (const type of ['progress', 'done']) {
      this.#source.addEventListener(type, ({ data }) => this.#note(type, data as string));
    }
    // The stream's own event has data; one of the connection's has none.
    this.#source.addEventListener('error', (event) => {
      if ('data' in event) this.#note('error', event.data as string);
      else if (this.#over) this.#source.close();
    });
  }

  static open({ baseUrl }: { baseUrl: string }, key: string, id: string): BuildEvents {
    return new BuildEvents(baseUrl, key, id);
  }

  /** The first event has come: the stream is open. */
  async first(): Promise<void> {
    await until('the stream is open', () => this.all.length > 0);
  }

  /** All that came, once the last has. */
  async ended(): Promise<BuildEvents['all']> {
    await until('the stream ends', () => this.#over);
    this.#source.close();
    return this.all;
  }

  /** How many different states were told. */
  moves(): number {
    const states = this.all.filter(({ type }) => type === 'progress');
    return new Set(states.map(({ data }) => JSON.stringify(data))).size;
  }

  leave(): void {
    this.#source.close();
  }

  #note(type: string, data: string): void {
    this.all.push({ type, data: JSON.parse(data) });
    if (type === 'progress') return;
    this.#over = true;
    // As clients do, or it would open another one.
    this.#source.close();
  }

  async #see(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stream) this.text += decoder.decode(chunk, { stream: true });
    } catch {
      // It left.
    }
  }
}

function pickOf({ url, status, redirected, headers }: Response) {
  return { url, status, redirected, headers };
}
