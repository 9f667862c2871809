// Turns anything thrown into the error answer of Part 7.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { Log } from '../log.ts';
import { type Exchange, type Headers, sendJson } from './reply.ts';

export function refuse(exchange: Exchange, thrown: unknown, log: Log, headers: Headers = {}): void {
  const refusal = thrown instanceof Refusal ? thrown : new Refusal('unexpected');
  const { requestId } = exchange;
  const cause = refusal.cause ?? (refusal === thrown ? undefined : thrown);
  // Something failed, or could not be done for want of something; being asked before the time is neither.
  if (cause !== undefined) log.error({ request_id: requestId, err: cause }, refusal.message);
  else if (refusal.status >= 500 && refusal.error !== 'not_ready') {
    log.warn({ request_id: requestId, error: refusal.error }, refusal.message);
  }
  // An unexpected 500 tells nothing of the budget (Part 8).
  if (refusal.error === 'unexpected') exchange.meter = undefined;
  sendJson(
    exchange,
    refusal.status,
    { ...refusal.body(), request_id: requestId },
    { ...challenge(refusal), ...refusal.headers, ...headers },
  );
}

/** Part 5 rule 6, to the letter. */
function challenge(refusal: Refusal): Headers | undefined {
  if (refusal.status !== 401) return undefined;
  const missing = refusal.error === 'credential_missing';
  return { 'WWW-Authenticate': missing ? 'Bearer' : 'Bearer error=invalid_token' };
}
