// Finds the contract's route for a path and a method, and the methods a path allows.

import type { Method, Route } from '@cubicle/contract/route.ts';

interface Node<Entry> {
  readonly literal: Map<string, Node<Entry>>;
  parameter: Node<Entry> | undefined;
  place: Place<Entry> | undefined;
}

/** A path of the contract with all its methods. */
export interface Place<Entry> {
  readonly parameters: readonly string[];
  readonly entries: ReadonlyMap<string, Entry>;
  /** In stable order, HEAD wherever GET is, OPTIONS last (Part 1 rule 4). */
  readonly allow: string;
}

export interface Match<Entry> {
  readonly place: Place<Entry>;
  readonly parameters: Readonly<Record<string, string>>;
}

const methodOrder: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

export class Router<Entry extends { readonly route: Route }> {
  readonly #root: Node<Entry> = node();

  constructor(entries: readonly Entry[]) {
    for (const [path, group] of Map.groupBy(entries, ({ route }) => route.path)) {
      this.#add(path, group);
    }
  }

  match(segments: readonly string[]): Match<Entry> | undefined {
    let at: Node<Entry> | undefined = this.#root;
    const values: string[] = [];
    for (const segment of segments) {
      const literal: Node<Entry> | undefined = at.literal.get(segment);
      if (literal === undefined) values.push(segment);
      at = literal ?? at.parameter;
      if (at === undefined) return undefined;
    }
    const { place } = at;
    if (place === undefined) return undefined;
    const parameters: Record<string, string> = {};
    place.parameters.forEach((name, i) => {
      parameters[name] = values[i] as string;
    });
    return { place, parameters };
  }

  #add(path: string, entries: readonly Entry[]): void {
    let at = this.#root;
    const parameters: string[] = [];
    for (const segment of path.slice(1).split('/')) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name !== undefined) {
        parameters.push(name);
        at = at.parameter ??= node();
      } else {
        let next = at.literal.get(segment);
        if (next === undefined) at.literal.set(segment, (next = node()));
        at = next;
      }
    }
    const methods = new Map<string, Entry>(entries.map((entry) => [entry.route.method, entry]));
    at.place = { parameters, entries: methods, allow: allowed(methods) };
  }
}

function node<Entry>(): Node<Entry> {
  return { literal: new Map(), parameter: undefined, place: undefined };
}

function allowed(methods: ReadonlyMap<string, unknown>): string {
  return methodOrder
    .filter((method) => methods.has(method))
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .concat('OPTIONS')
    .join(', ');
}
