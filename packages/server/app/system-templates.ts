// The templates that the service itself has, by their documents.

import { type TemplateDocument, templateDefaults } from '@cubicle/contract/template-document.ts';
import type { PublishedTemplate, Template } from '@cubicle/contract/resources/templates.ts';
import { canonicalJson, digestOf } from '../documents/canonical.ts';
import { rowOf } from '../documents/read.ts';

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

const published = [base, tiling].map((document) => ({
  ref: rowOf(document).ref,
  doc_digest: digestOf(canonicalJson(document)),
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
