// A document from its bytes to what is known of it: its problems, or its canonical form, digests and row.
// Pure: the same bytes give the same answer, and nothing else is looked at.

import {
  isRef,
  refOf,
  templateDefaults,
  type TemplateDocument,
  templateDocument,
} from '@cubicle/contract/template-document.ts';
import type { Template } from '@cubicle/contract/resources/templates.ts';
import { crossProblems } from '@cubicle/contract/template-rules.ts';
import { buildDigestOf, canonicalJson, digestOf } from './canonical.ts';
import { parseDocument } from './parse.ts';

export interface ValidDocument {
  readonly valid: true;
  readonly ref: string;
  readonly docDigest: string;
  /** Of a document without a parent. */
  readonly buildDigest: string | undefined;
  /** What it takes to know the digest, of any other. */
  readonly buildDigestNeeds: string | undefined;
  readonly canonical: string;
  readonly document: TemplateDocument;
}

export interface InvalidDocument {
  readonly valid: false;
  readonly problems: readonly string[];
  /** Where it can be told nevertheless. */
  readonly ref: string | undefined;
}

export type Reading = ValidDocument | InvalidDocument;

export function readDocument(bytes: Uint8Array): Reading {
  const { value, problems } = parseDocument(bytes);
  if (value === undefined) return { valid: false, problems: problems.list(), ref: undefined };
  const checked = templateDocument.safeParse(value, { reportInput: true });
  if (!checked.success) problems.addIssues(checked.error);
  for (const [path, problem] of crossProblems(value)) problems.add(path, problem);
  if (!checked.success || !problems.none) {
    return { valid: false, problems: problems.list(), ref: refSaid(value) };
  }
  const document = checked.data;
  const canonical = canonicalJson(document);
  const { from } = document.spec;
  return {
    valid: true,
    ref: refOf(document),
    docDigest: digestOf(canonical),
    buildDigest: from === undefined ? buildDigestOf(document) : undefined,
    buildDigestNeeds:
      from && `The digest of the image of ${from}, which the host that builds knows.`,
    canonical,
    document,
  };
}

/** The row that listings show. */
export function rowOf(document: TemplateDocument): Template {
  const { metadata, spec } = document;
  const { label, os, desktop, icon } = spec;
  return {
    name: metadata.name,
    ref: refOf(document),
    label: label ?? metadata.name,
    os,
    ...(desktop !== undefined && { desktop }),
    ...(icon !== undefined && { icon }),
    cpu: spec.cpu ?? templateDefaults.cpu,
    ram_mb: spec.ram_mb ?? templateDefaults.ram_mb,
    disk_gb: spec.disk_gb ?? templateDefaults.disk_gb,
  };
}

function refSaid(value: unknown): string | undefined {
  const { namespace, name, version } =
    (value as { metadata?: Record<string, unknown> | null } | null)?.metadata ?? {};
  const ref = [namespace, name, version].every((part) => typeof part === 'string')
    ? `${namespace as string}/${name as string}@${version as string}`
    : '';
  return ref.length <= 200 && isRef(ref) ? ref : undefined;
}
