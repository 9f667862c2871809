// The debugging protocol of Chromium, as far as reading a page needs it. Anybody may listen at the port:
// what is heard is bounded and looked at before it is believed.

import type { Context } from '@cubicle/contract/guest/mux.ts';
import type { RawData, WebSocket } from 'ws';

export interface OpenPage {
  readonly id: string;
  readonly title: string;
}

/** Of the list of pages, whose addresses may hold whole pictures, and of one message. */
const mostBytes = 4 * 1024 * 1024;
const mostPages = 1_000;

/** Those used last first. */
export async function openPages(context: Context, port: number): Promise<OpenPage[]> {
  const told = JSON.parse(await fetchText(context, port, '/json/list')) as unknown;
  if (!Array.isArray(told)) throw new Error('a list of pages that is none');
  return told.slice(0, mostPages).flatMap((each) => {
    const { type, id, title } = fieldsOf(each);
    const isPage = type === 'page' && typeof id === 'string' && /^[0-9A-Fa-f]{32}$/.test(id);
    return isPage ? [{ id, title: typeof title === 'string' ? title : '' }] : [];
  });
}

async function fetchText({ signal }: Context, port: number, path: string): Promise<string> {
  // Few computers are asked for a page: the agents of the others do without this, and without `ws`.
  const { get } = await import('node:http');
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, signal }, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > mostBytes) request.destroy(new Error('a list of pages that is too long'));
        else pieces.push(piece);
      });
      response.once('end', () => resolve(Buffer.concat(pieces).toString('utf8')));
      response.once('error', reject);
    });
    request.once('error', reject);
  });
}

/** One page, asked one thing after the other. */
export class PageSession {
  readonly #socket: WebSocket;
  #lastId = 0;
  #answers: ((message: Record<string, unknown>) => void) | undefined;
  readonly #ended = Promise.withResolvers<never>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#ended.promise.catch(() => {});
    socket.on('message', (data) => this.#heard(data));
    socket.on('close', () => this.#ended.reject(new Error('the browser hung up')));
    // Why it closes is told by what asks.
    socket.on('error', () => {});
  }

  /** Lasts as long as `use` does, and no longer than its caller. */
  static async with<Result>(
    { signal }: Context,
    port: number,
    page: string,
    use: (session: PageSession) => Promise<Result>,
  ): Promise<Result> {
    const { WebSocket: Socket } = await import('ws');
    signal.throwIfAborted();
    const socket = new Socket(`ws://127.0.0.1:${port}/devtools/page/${page}`, {
      maxPayload: mostBytes,
      perMessageDeflate: false,
    });
    const session = new PageSession(socket);
    const leave = () => socket.terminate();
    signal.addEventListener('abort', leave, { once: true });
    try {
      await session.#unlessEnded(new Promise((resolve) => socket.once('open', resolve)));
      return await use(session);
    } finally {
      signal.removeEventListener('abort', leave);
      socket.terminate();
    }
  }

  /** What the browser answers; its refusals are thrown. */
  async ask(method: string, params: object): Promise<Record<string, unknown>> {
    this.#lastId += 1;
    const answer = new Promise<Record<string, unknown>>((resolve) => (this.#answers = resolve));
    this.#socket.send(JSON.stringify({ id: this.#lastId, method, params }));
    const { result } = await this.#unlessEnded(answer);
    if (result === undefined) throw new Error(`the browser refused ${method}`);
    return fieldsOf(result);
  }

  #unlessEnded<Result>(work: Promise<Result>): Promise<Result> {
    return Promise.race([work, this.#ended.promise]);
  }

  #heard(data: RawData): void {
    try {
      const message = fieldsOf(JSON.parse((data as Buffer).toString('utf8')));
      if (message['id'] === this.#lastId) this.#answers?.(message);
    } catch {
      this.#socket.terminate();
    }
  }
}

export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
