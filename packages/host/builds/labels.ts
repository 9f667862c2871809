// How a build stands in the engine: an instance that bears its id twice once it is finished. Between the two
// labels it is unfinished, and nobody's.

import { hash } from 'node:crypto';
import type { Instance } from '../engine/engine.ts';

const names = { build: 'build', built: 'built', image: 'image' } as const;

/** `image`: the digest of its parent's. */
export const buildLabels = (id: string, image: string) => ({
  [names.build]: id,
  [names.image]: image,
});

export const builtLabels = (id: string) => ({ [names.built]: id });

/** Undefined for an instance that is no build. */
export function buildOf({
  labels,
}: Instance): { readonly id: string; readonly finished: boolean } | undefined {
  const id = labels[names.build];
  if (id === undefined) return undefined;
  return { id, finished: labels[names.built] === id };
}

/** Drawn from the build's id: a build that is ordered again meets what is left of it. */
export function buildInstance(id: string): string {
  return `bld-${hash('sha256', id, 'hex').slice(0, 12)}`;
}
