// The canonical form of a document and its digests: RFC 8785 for what a template can hold. Keys are sorted by
// their UTF-16 units, there is no space, numbers and strings are written as JSON.stringify writes them.

import { hash } from 'node:crypto';
import type { TemplateDocument } from '@cubicle/contract/template-document.ts';

export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`);
  return `{${members.join(',')}}`;
}

export function digestOf(text: string): string {
  return `sha256:${hash('sha256', text, 'hex')}`;
}

/** What decides the image, and nothing else: names, sizes and labels leave it alone. */
export function buildDigestOf({ apiVersion, spec }: TemplateDocument): string {
  const { os, desktop, family, build, env, secrets } = spec;
  const inputs = { apiVersion, os, desktop, family, build, env, secrets };
  const said = Object.entries(inputs).filter(([, value]) => value !== undefined);
  return digestOf(canonicalJson(Object.fromEntries(said)));
}
