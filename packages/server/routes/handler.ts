// What a handler is: typed by its route in the contract, it sees the authority and the checked input.

import type { z } from 'zod';
import type { Route } from '@cubicle/contract/route.ts';
import type { Authority } from '../app/authority.ts';
import type { Keyed } from '../app/idempotency.ts';
import type { Reply } from './reply.ts';

type Parameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Record<Name, string> & Parameters<Rest>
  : unknown;

type Infer<Schema> = Schema extends z.ZodType ? z.infer<Schema> : never;
type Body<R extends Route> = R extends { readonly body: { readonly schema: infer S } }
  ? Infer<S>
  : undefined;
type Document<R extends Route> = R extends { readonly document: object } ? Buffer : undefined;
type Query<R extends Route> = R extends { readonly query: infer S } ? Infer<S> : undefined;

export interface Call<R extends Route> {
  readonly authority: Authority;
  readonly parameters: Parameters<R['path']>;
  readonly query: Query<R>;
  readonly body: Body<R>;
  /** The bytes of a route's document. */
  readonly document: Document<R>;
  /** Present when the route honours `Idempotency-Key` and one was sent. */
  readonly keyed: Keyed | undefined;
  readonly range: string | undefined;
  /** The raw body of a route that takes an upload; reading past its cap throws. */
  readonly upload: AsyncIterable<Uint8Array> | undefined;
  /** As every answer names it. */
  readonly requestId: string;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  /** Calls back when the caller has ended its side: it is gone, or still listens, which only writing tells. */
  readonly onLastWord: (heard: () => void) => void;
}

export type Handler<R extends Route> = (
  call: Call<R>,
) => Promise<z.infer<R['answer']['schema']> | Reply>;

export type Handlers<Routes extends Record<string, Route>> = {
  readonly [Name in keyof Routes]: Handler<Routes[Name]>;
};

/** A route joined with its handler, as the door walks them. */
export interface Entry {
  readonly name: string;
  readonly route: Route;
  readonly handle: (
    call: Omit<Call<Route>, 'parameters' | 'query' | 'body' | 'document'> & {
      readonly parameters: Readonly<Record<string, string>>;
      readonly query: unknown;
      readonly body: unknown;
      readonly document: Buffer | undefined;
    },
  ) => Promise<unknown>;
}

export function joinHandlers<Routes extends Record<string, Route>>(
  routes: Routes,
  handlers: Handlers<Routes>,
): Entry[] {
  return Object.entries(routes).map(([name, route]) => ({
    name,
    route,
    // Body and query have passed the route's schemas and the parameters come from its path.
    handle: handlers[name] as unknown as Entry['handle'],
  }));
}
