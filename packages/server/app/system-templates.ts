// The templates that the service itself has, by their documents. Hosts have images of the first ones; the
// others, in the folder `templates`, are built when somebody first wants them.

import { readdirSync, readFileSync } from 'node:fs';
import { type TemplateDocument, templateDefaults } from '@cubicle/contract/template-document.ts';
import type { PublishedTemplate, Template } from '@cubicle/contract/resources/templates.ts';
import { canonicalJson } from '../documents/canonical.ts';
import { readDocument, rowOf, type ValidDocument } from '../documents/read.ts';

const base: TemplateDocument = {
  apiVersion: 'cubicle/v1',
  kind: 'Template',
  metadata: { namespace: 'system', name: 'base', version: '1.0.0' },
  spec: { label: 'Debian 12 desktop', os: 'linux', ...templateDefaults },
};

const tiling: TemplateDocument = {
  ...base,
  metadata: { ...base.metadata, name: 'tiling' },
  spec: { ...base.spec, label: 'Debian 12 tiling desktop (sway)', desktop: 'wayland' },
};

const own = [base, tiling].map((document) => valid(Buffer.from(canonicalJson(document))));
const folder = new URL('../../../templates/', import.meta.url);
/** Of the templates that are built on demand. */
export const builtDocuments: readonly ValidDocument[] = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .toSorted()
  .map((name) => valid(readFileSync(new URL(name, folder))));

const published = [...own, ...builtDocuments].map(({ ref, docDigest, document }) => ({
  ref,
  doc_digest: docDigest,
  document,
  template: rowOf(document),
  versions: [document.metadata.version],
}));

export const systemTemplates: readonly Template[] = published.map(({ template }) => template);

export const defaultTemplate = systemTemplates[0] as Template;

export function publishedBySystem(
  name: string,
  version: string | undefined,
): PublishedTemplate | undefined {
  return published.find(
    ({ template, versions }) =>
      template.name === name && (version === undefined || versions.includes(version)),
  );
}

/** Whether hosts have an image of it by themselves. */
export function hasImage(name: string): boolean {
  return own.some(({ document }) => document.metadata.name === name);
}

/** The document of a template that is built on demand. */
export function builtBySystem(name: string): ValidDocument | undefined {
  return builtDocuments.find(({ document }) => document.metadata.name === name);
}

function valid(bytes: Buffer): ValidDocument {
  const reading = readDocument(bytes);
  if (!reading.valid) throw new Error(`a template of the service: ${reading.problems.join('; ')}`);
  return reading;
}
