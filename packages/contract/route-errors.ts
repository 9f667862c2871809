// Everything a route may answer with besides success: what the door raises and what its own rules raise.

import type { ErrorName } from './errors.ts';
import type { Route } from './route.ts';

const everywhere: readonly ErrorName[] = [
  'credential_missing',
  'credential_invalid',
  'credential_revoked',
  'authority_gone',
  'rate_limited',
  'unexpected',
  'store_unavailable',
  'not_ready',
];
const withBody: readonly ErrorName[] = [
  'body_too_large',
  'body_incomplete',
  'body_encoding',
  'body_malformed',
  'body_refused',
  'request_timeout',
];

const withDocument: readonly ErrorName[] = [
  'body_too_large',
  'body_incomplete',
  'body_encoding',
  'request_timeout',
];

export function errorsOf(route: Route): readonly ErrorName[] {
  return [
    ...everywhere,
    ...(route.role === 'viewer' ? [] : (['role_too_low'] as const)),
    ...(route.reach === 'account' ? (['account_wide_only'] as const) : []),
    ...(route.whileSuspended ? [] : (['account_suspended'] as const)),
    ...(route.verifiedFor === undefined ? [] : (['email_unverified'] as const)),
    ...(route.method === 'GET' ? [] : (['role_lowered'] as const)),
    ...(route.body === undefined ? [] : withBody),
    ...(route.document === undefined ? [] : withDocument),
    ...route.errors,
  ];
}

/** Raised outside any route: by the listener, or for a path or method that is no route. */
export const errorsOutsideRoutes: readonly ErrorName[] = [
  'endpoint_unknown',
  'method_unsupported',
  'request_malformed',
  'headers_too_large',
  'request_timeout',
  'upstream_failed',
];
