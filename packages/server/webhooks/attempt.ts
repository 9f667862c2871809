// One attempt to deliver: one POST to an address that was checked for it, within ten seconds for everything.

import { type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent, type AgentOptions, request as httpsRequest, type RequestOptions } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { createSecureContext, getCACertificates } from 'node:tls';
import { limits } from '@cubicle/contract/limits.ts';
import { unlessAborted } from '@cubicle/contract/unless-aborted.ts';
import { type AddressCheck, AddressRefused } from './address.ts';
import { signatures } from './signature.ts';

export interface Shipment {
  readonly id: string;
  readonly subscription: string;
  readonly url: string;
  readonly body: string;
  /** The newest first. */
  readonly secrets: readonly Buffer[];
}

export interface AttemptResult {
  readonly ok: boolean;
  readonly status: number | null;
  /** One line; null after a success. */
  readonly error: string | null;
  /** Of 429 and 503: how long the receiver wants to be left alone. */
  readonly retryAfterMs?: number;
}

export interface SenderParts {
  readonly check: AddressCheck;
  /** The clock that timestamps are told by. */
  readonly date: () => Date;
  /** PEM of an authority of the operator's own, trusted besides the public ones. */
  readonly authority?: string | undefined;
  readonly timeoutMs?: number;
}

/** What of an answer's body is read; nobody looks at it. */
const mostBody = 16 * 1024;
/** A receiver's connection is kept for the next delivery this long. */
const idleMs = 15_000;
/** Kept open to one address while nothing is sent. */
const keptOpen = limits.webhookConcurrency;
/** The longest that a receiver can put the next attempt off. */
const longestRetryMs = 24 * 3_600_000;

/** Keeps connections by the addresses that were checked, so that none is used for others. */
class CheckedAgent extends Agent {
  override getName(options: RequestOptions & { checked?: string }): string {
    return `${options.checked}|${super.getName(options)}`;
  }
}

export class Sender {
  readonly #parts: SenderParts;
  readonly #agent: Agent;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    const { authority } = parts;
    // Made once: reading all public authorities takes longer than a handshake.
    const ca = authority === undefined ? {} : { ca: [...getCACertificates('default'), authority] };
    const options: AgentOptions = {
      keepAlive: true,
      maxFreeSockets: keptOpen,
      timeout: idleMs,
      secureContext: createSecureContext(ca),
    };
    this.#agent = new CheckedAgent(options);
  }

  /** Never throws but when `ending` breaks it off. */
  async send(shipment: Shipment, ending: AbortSignal): Promise<AttemptResult> {
    ending.throwIfAborted();
    // One controller and one timer, cleared: a signal that times out by itself would outlive the attempt.
    const cut = new AbortController();
    const timer = setTimeout(() => cut.abort(), this.#parts.timeoutMs ?? limits.webhookAttemptMs);
    const breakOff = () => cut.abort();
    ending.addEventListener('abort', breakOff, { once: true });
    try {
      return await this.#attempt(shipment, cut.signal);
    } catch (error) {
      ending.throwIfAborted();
      return failed(cut.signal.aborted ? 'timeout' : wordFor(error));
    } finally {
      clearTimeout(timer);
      ending.removeEventListener('abort', breakOff);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #attempt(shipment: Shipment, signal: AbortSignal): Promise<AttemptResult> {
    const url = new URL(shipment.url);
    // A look-up that does not hear of the end is not waited for.
    const addresses = await unlessAborted({ signal }, this.#parts.check.addresses(url, signal));
    const timestamp = Math.floor(this.#parts.date().getTime() / 1_000);
    const { id, subscription, body, secrets } = shipment;
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Service-Webhooks/1',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures(secrets, id, timestamp, body),
      'webhook-subscription': subscription,
    };
    const post = () => this.#post(url, addresses, headers, body, signal);
    try {
      return await post();
    } catch (error) {
      // The receiver closed a kept connection just when it was taken: no attempt was made yet.
      if (error instanceof StaleConnection && !signal.aborted) return post();
      throw error;
    }
  }

  #post(
    url: URL,
    addresses: readonly string[],
    headers: Record<string, string | number>,
    body: string,
    signal: AbortSignal,
  ): Promise<AttemptResult> {
    const options = {
      method: 'POST',
      headers,
      agent: this.#agent,
      checked: addresses.toSorted().join(),
      lookup: answering(addresses),
      signal,
    };
    return new Promise((resolve, reject) => {
      const request: ClientRequest = httpsRequest(url, options as RequestOptions);
      request.on('response', (response) => {
        readSome(response).then(() => resolve(resultOf(response)), reject);
      });
      request.on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(resultOf(response));
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        const stale = request.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '');
        reject(stale ? new StaleConnection('closed meanwhile', { cause: error }) : error);
      });
      request.end(body);
    });
  }
}

/** The very addresses that were checked; the name is still the one that the certificate must have. */
function answering(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_host, { all }, answer) =>
    all === true ? answer(null, found) : answer(null, found[0]?.address ?? '', found[0]?.family);
}

class StaleConnection extends Error {}

/** To its end or to the bound, where the connection ends with it. */
function readSome(response: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= mostBody) return;
      resolve();
      response.destroy();
    });
    response.on('end', resolve);
    response.on('error', reject);
  });
}

const redirects = new Set([301, 302, 303, 307, 308]);

function resultOf({ statusCode, headers }: IncomingMessage): AttemptResult {
  const status = statusCode ?? 0;
  if (status >= 200 && status < 300) return { ok: true, status, error: null };
  const error = redirects.has(status) ? 'redirect' : `status ${status}`;
  const putOff =
    status === 429 || status === 503 ? readRetryAfter(headers['retry-after']) : undefined;
  return { ok: false, status, error, ...(putOff !== undefined && { retryAfterMs: putOff }) };
}

/** Seconds, or a date. */
function readRetryAfter(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return ms > 0 ? Math.min(ms, longestRetryMs) : undefined;
}

function failed(error: string): AttemptResult {
  return { ok: false, status: null, error };
}

const words: Record<string, string> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  ECONNABORTED: 'reset',
  ETIMEDOUT: 'timeout',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
};

function wordFor(error: unknown): string {
  if (error instanceof AddressRefused) {
    return error.refusal.why === 'unresolved' ? 'dns' : 'address refused';
  }
  if (error instanceof StaleConnection) return 'reset';
  const { code = '' } = error as NodeJS.ErrnoException;
  if (words[code] !== undefined) return words[code];
  if (code.startsWith('HPE_')) return 'malformed answer';
  // What OpenSSL says of a handshake, and what Node says of certificates and their names.
  if (/^ERR_SSL|^ERR_TLS|CERT|^EPROTO$|SELF_SIGNED|^UNABLE_TO|^HOSTNAME/.test(code)) return 'tls';
  return 'failed';
}
