// What a public route is: everything the door needs to know of it before its handler runs.

import type { z } from 'zod';
import type { ErrorName } from './errors.ts';

export const roles = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof roles)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Route {
  readonly method: Method;
  /** Relative to the base path; `{name}` stands for one path segment. */
  readonly path: `/${string}`;
  /** The lowest role that may call it. */
  readonly role: Role;
  /** `account`: a key confined to a workspace is refused at the door (403, cost 1). */
  readonly reach: 'account' | 'scope';
  /** Units of the rate budget, taken at admission (Part 8). */
  readonly cost: number;
  /** Present where a body is read. */
  readonly body?: { readonly schema: z.ZodType; readonly cap: number };
  /** Present where the body is a document, JSON or YAML, whatever its content type; read by its rules. */
  readonly document?: { readonly schema: z.ZodType; readonly cap: number };
  /** Present where the raw body is streamed on; its cap in bytes. */
  readonly upload?: { readonly cap: number };
  /** Checked over the query's names and values; a name given twice is an array. Absent: ignored. */
  readonly query?: z.ZodType;
  /** True where `Idempotency-Key` is honoured (Part 1 rule 7). */
  readonly idempotent?: true;
  readonly answer: {
    readonly status: number;
    /** Another status of success, with the same shape. */
    readonly also?: number;
    readonly schema: z.ZodType;
    /** Where it is not JSON; `schema` then describes nothing. */
    readonly mediaType?: string;
  };
  /** What its own rules raise, besides what the door raises on every route. */
  readonly errors: readonly ErrorName[];
  /** True where a suspended account may still call it (Part 4 Account). */
  readonly whileSuspended?: true;
  /** Ends the sentence `Verify your email before …`; present where an unverified holder is refused. */
  readonly verifiedFor?: string;
  readonly summary: string;
  readonly prose: string;
  /** Where the specification speaks of it. */
  readonly source: string;
}

export function atLeast(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** Keeps the literal types of a resource's routes, so that handlers can be typed by them. */
export function defineRoutes<const R extends Record<string, Route>>(routes: R): R {
  return routes;
}
