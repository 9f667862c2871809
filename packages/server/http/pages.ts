// What is served beside the API, without an API key: health, metrics, the description, the reference, and
// the pages of live desktops.

import { Refusal } from '@cubicle/contract/errors.ts';
import { type Exchange, send, sendJson } from './reply.ts';
import { requestIdHeader } from './request-id.ts';

export interface Page {
  readonly contentType: string;
  readonly content: () => string | Promise<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PagesParts {
  /** By path; a second segment `*` stands for any. */
  readonly pages: Readonly<Record<string, Page>>;
  readonly ready: () => Promise<boolean>;
  /** How a computer's desktop is, for its page, which holds its credential; throws why it cannot be opened. */
  readonly lookAtDesktop: (computer: string, token: string) => Promise<void>;
}

const allow = 'GET, HEAD, OPTIONS';
const bearer = /^Bearer +(\S+)$/i;

export class Pages {
  readonly #parts: PagesParts;
  readonly #pages: ReadonlyMap<string, Page>;

  constructor(parts: PagesParts) {
    this.#parts = parts;
    this.#pages = new Map(Object.entries(parts.pages));
  }

  /** Returns the name of the page, for the metrics. */
  async answer(exchange: Exchange, segments: readonly string[]): Promise<string> {
    const { request, requestId } = exchange;
    const name = this.#nameOf(segments);
    const page = this.#pages.get(name);
    if (page === undefined && !['healthz', 'root', 'desktop/*/state'].includes(name)) {
      throw new Refusal('endpoint_unknown');
    }
    if (request.method === 'OPTIONS') {
      send(exchange, 204, undefined, { Allow: allow, [requestIdHeader]: requestId });
    } else if (request.method !== 'GET' && request.method !== 'HEAD') {
      const refusal = new Refusal('method_unsupported', { allow });
      sendJson(exchange, 405, { ...refusal.body(), request_id: requestId }, { Allow: allow });
    } else if (page !== undefined) {
      send(exchange, 200, await page.content(), {
        'Content-Type': page.contentType,
        'X-Content-Type-Options': 'nosniff',
        ...page.headers,
        [requestIdHeader]: requestId,
      });
    } else if (name === 'root') {
      send(exchange, 302, undefined, {
        Location: '/docs',
        'Content-Length': 0,
        [requestIdHeader]: requestId,
      });
    } else if (name === 'desktop/*/state') {
      const token = bearer.exec(request.headers.authorization ?? '')?.[1] ?? '';
      await this.#parts.lookAtDesktop(segments[1] ?? '', token);
      sendJson(exchange, 200, { ok: true });
    } else if (await this.#parts.ready()) {
      sendJson(exchange, 200, { ok: true });
    } else {
      throw new Refusal('not_ready');
    }
    return name;
  }

  #nameOf([first = '', ...rest]: readonly string[]): string {
    if (first === '') return 'root';
    const exact = [first, ...rest].join('/');
    if (rest.length === 0 || this.#pages.has(exact)) return exact;
    return [first, '*', ...rest.slice(1)].join('/');
  }
}
