// Turns anything thrown into the error answer of Part 7.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { Log } from '../log.ts';
import { type Exchange, type Headers, sendJson } from './reply.ts';

export function refuse(exchange: Exchange, thrown: unknown, log: Log, headers: Headers = {}): void {
  const refusal = thrown instanceof Refusal ? thrown : new Refusal('unexpected');
  // Being asked before the time is no fault to look into.
  if (refusal.status >= 500 && refusal.error !== 'not_ready') {
    log.error({ request_id: exchange.requestId, err: refusal.cause ?? thrown }, refusal.message);
  }
  // An unexpected 500 tells nothing of the budget (Part 8).
  if (refusal.error === 'unexpected') exchange.meter = undefined;
  sendJson(
    exchange,
    refusal.status,
    { ...refusal.body(), request_id: exchange.requestId },
    { ...challenge(refusal), ...refusal.headers, ...headers },
  );
}

/** Part 5 rule 6, to the letter. */
function challenge(refusal: Refusal): Headers | undefined {
  if (refusal.status !== 401) return undefined;
  const missing = refusal.error === 'credential_missing';
  return { 'WWW-Authenticate': missing ? 'Bearer' : 'Bearer error=invalid_token' };
}
