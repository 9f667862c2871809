// The rules of template documents that join several fields, which a shape cannot say.

import { parseRef, stepKinds } from './template-document.ts';

/** What cannot be said field by field, looked at whatever else is wrong: [path, problem] each. */
export function crossProblems(value: unknown): [path: (string | number)[], problem: string][] {
  const found: [(string | number)[], string][] = [];
  const spoken = part(value, 'spec');
  const [build, env, from, secrets] = ['build', 'env', 'from', 'secrets'].map((key) =>
    part(spoken, key),
  );
  if ((Array.isArray(build) && build.length > 0) || env !== undefined) {
    const why = 'because there is something to build';
    if (from === undefined) found.push([['spec', 'from'], `is required ${why}`]);
    else if (isForeign(from)) {
      found.push([['spec', 'from'], `must name a system template, ${why}`]);
    }
  }
  for (const [n, one] of entries(build)) {
    if (!isObject(one)) continue;
    const kinds = stepKinds.filter((kind) => Object.hasOwn(one, kind));
    if (kinds.length !== 1) {
      found.push([['spec', 'build', n], `must have exactly one of ${stepKinds.join(', ')}`]);
    }
    const file = part(one, 'file');
    const contents = [part(file, 'content'), part(file, 'content_b64')];
    if (isObject(file) && contents.filter((content) => content !== undefined).length !== 1) {
      const place = ['spec', 'build', n, 'file'];
      found.push([place, 'must have exactly one of content, content_b64']);
    }
  }
  const seen = new Set<unknown>();
  for (const [n, one] of entries(secrets)) {
    const as = part(one, 'as');
    if (typeof as === 'string' && seen.has(as)) {
      found.push([['spec', 'secrets', n, 'as'], 'is the name of an earlier secret as well']);
    }
    seen.add(as);
  }
  return found;
}

function isForeign(from: unknown): boolean {
  return typeof from === 'string' && (parseRef(from)?.namespace ?? 'system') !== 'system';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function part(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function entries(value: unknown): Iterable<[number, unknown]> {
  return Array.isArray(value) ? value.entries() : [];
}
