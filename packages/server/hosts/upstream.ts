// Part 1 rule 8: what a host answers with an error becomes an answer of ours, whatever shape it came in.

import { Refusal, type ErrorBody } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';

export interface UpstreamBounds {
  readonly bytes: number;
  readonly ms: number;
}

const bounds: UpstreamBounds = { bytes: limits.upstreamErrorBody, ms: limits.upstreamErrorMs };

/** Answered under the upstream's own status. */
export class UpstreamRefusal extends Refusal {
  readonly #status: number;
  readonly #body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super('upstream_failed');
    this.#status = status;
    this.#body = body;
  }

  override get status(): number {
    return this.#status;
  }

  override body(): ErrorBody {
    return this.#body;
  }
}

/**
 * The error object to answer with. A readable one passes through, without its own correlation; anything
 * non-JSON, malformed, aborted, oversized or stalled becomes a small envelope.
 */
export async function upstreamError(
  body: AsyncIterable<Uint8Array> | null,
  { bytes, ms }: UpstreamBounds = bounds,
): Promise<ErrorBody> {
  const { request_id: _, ...error } =
    (await readError(body, bytes, ms)) ?? new Refusal('upstream_failed').body();
  return error;
}

async function readError(
  body: AsyncIterable<Uint8Array> | null,
  bytes: number,
  ms: number,
): Promise<ErrorBody | undefined> {
  if (body === null) return undefined;
  const chunks = body[Symbol.asyncIterator]();
  const { promise: stalled, resolve: stall } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => stall(undefined), ms);
  try {
    const text = await Promise.race([collect(chunks, bytes), stalled]);
    return text === undefined ? undefined : errorObject(text);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    // Not awaited: a stalled upstream may never answer to this either.
    void chunks.return?.().catch(() => {});
  }
}

async function collect(
  chunks: AsyncIterator<Uint8Array>,
  most: number,
): Promise<string | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await chunks.next();
    if (done === true)
      return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    size += value.length;
    if (size > most) return undefined;
    parts.push(value);
  }
}

function errorObject(text: string): ErrorBody | undefined {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return 'error' in value && typeof value.error === 'string' ? (value as ErrorBody) : undefined;
}
