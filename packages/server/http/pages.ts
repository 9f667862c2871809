// What is served beside the API, without a credential: health, metrics, the description and the reference.

import { Refusal } from '@cubicle/contract/errors.ts';
import { type Exchange, send, sendJson } from './reply.ts';
import { requestIdHeader } from './request-id.ts';

export interface Page {
  readonly contentType: string;
  readonly content: () => string | Promise<string>;
}

const allow = 'GET, HEAD, OPTIONS';

export class Pages {
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #ready: () => Promise<boolean>;

  constructor(pages: Readonly<Record<string, Page>>, ready: () => Promise<boolean>) {
    this.#pages = new Map(Object.entries(pages));
    this.#ready = ready;
  }

  async answer(exchange: Exchange, segments: readonly string[]): Promise<string> {
    const { request, requestId } = exchange;
    const path = segments.join('/');
    const page = this.#pages.get(path);
    if (page === undefined && path !== 'healthz' && path !== '') {
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
        [requestIdHeader]: requestId,
      });
    } else if (path === '') {
      send(exchange, 302, undefined, {
        Location: '/docs',
        'Content-Length': 0,
        [requestIdHeader]: requestId,
      });
    } else if (await this.#ready()) {
      sendJson(exchange, 200, { ok: true });
    } else {
      throw new Refusal('not_ready');
    }
    return path === '' ? 'root' : path;
  }
}
