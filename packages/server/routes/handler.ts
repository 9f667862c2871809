// What a handler is: typed by its route in the contract, it sees the authority and the checked input.

import type { z } from 'zod';
import type { Route } from '@cubicle/contract/route.ts';
import type { Authority } from '../app/authority.ts';

type Parameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Record<Name, string> & Parameters<Rest>
  : unknown;

type Body<R extends Route> = R extends { readonly body: { readonly schema: infer S } }
  ? S extends z.ZodType
    ? z.infer<S>
    : never
  : undefined;

export interface Call<R extends Route> {
  readonly authority: Authority;
  readonly parameters: Parameters<R['path']>;
  readonly body: Body<R>;
}

export type Handler<R extends Route> = (call: Call<R>) => Promise<z.infer<R['answer']['schema']>>;

export type Handlers<Routes extends Record<string, Route>> = {
  readonly [Name in keyof Routes]: Handler<Routes[Name]>;
};

/** A route joined with its handler, as the door walks them. */
export interface Entry {
  readonly name: string;
  readonly route: Route;
  readonly handle: (call: {
    readonly authority: Authority;
    readonly parameters: Readonly<Record<string, string>>;
    readonly body: unknown;
  }) => Promise<unknown>;
}

export function joinHandlers<Routes extends Record<string, Route>>(
  routes: Routes,
  handlers: Handlers<Routes>,
): Entry[] {
  return Object.entries(routes).map(([name, route]) => ({
    name,
    route,
    // The body has passed the route's schema and the parameters come from its path.
    handle: handlers[name] as unknown as Entry['handle'],
  }));
}
