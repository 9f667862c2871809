// Templates: images a computer is built from, and the documents that describe them. Part 2 Template, Part 4
// Templates, wire-account section 1.

import { z } from 'zod';
import { costs, limits } from '../limits.ts';
import { defineRoutes } from '../route.ts';
import { templateDocument, versionPattern } from '../template-document.ts';
import { timestamp } from '../timestamp.ts';

const template = z
  .strictObject({
    name: z.string(),
    ref: z.string(),
    label: z.string(),
    os: z.string(),
    desktop: z.string().optional(),
    icon: z.string().optional(),
    cpu: z.int(),
    ram_mb: z.int(),
    disk_gb: z.int().describe('The disk a computer cannot be built below.'),
  })
  .meta({ id: 'Template' });
export type Template = z.infer<typeof template>;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const version = z.string().regex(versionPattern);

const validated = z
  .union([
    z.strictObject({
      valid: z.literal(true),
      ref: z.string(),
      doc_digest: digest.describe('SHA-256 of `canonical` in UTF-8.'),
      build_digest: digest
        .optional()
        .describe('Of a document without `spec.from`: what decides its image.'),
      build_digest_needs: z.string().optional().describe('Of any other: what it takes to know it.'),
      canonical: z.string().describe('Compact JSON with its keys in order (RFC 8785).'),
      template,
    }),
    z.strictObject({
      valid: z.literal(false),
      problems: z.array(z.string()).describe('Each begins with the path of what it is about.'),
      ref: z.string().optional(),
    }),
  ])
  .meta({ id: 'ValidatedTemplate' });
export type ValidatedTemplate = z.infer<typeof validated>;

const published = z
  .strictObject({
    ref: z.string(),
    doc_digest: digest,
    document: templateDocument,
    template,
    versions: z.array(version).describe('Those that are not retired, the highest first.'),
    published_at: timestamp.optional().describe('Absent for the service’s own.'),
  })
  .meta({ id: 'PublishedTemplate' });
export type PublishedTemplate = z.infer<typeof published>;

const retired = z
  .strictObject({
    retired: z.array(z.string()).describe('References, the highest version first.'),
    retired_at: timestamp,
    versions: z.array(version).describe('What is left of the name.'),
    templates: z.int().nonnegative().describe('Published references of the account.'),
    refs_claimed: z.int().nonnegative().describe('References it ever published; never falls.'),
  })
  .meta({ id: 'RetiredTemplates' });
export type RetiredTemplates = z.infer<typeof retired>;

const atVersion = z.object({
  version: version.optional().describe('MAJOR.MINOR.PATCH.'),
});

const source = 'wire-account, section 1';
const document = { schema: templateDocument, cap: limits.templateBody };

export const templateRoutes = defineRoutes({
  listTemplates: {
    method: 'GET',
    path: '/templates',
    role: 'viewer',
    reach: 'scope',
    cost: costs.fleetListing,
    answer: { status: 200, schema: z.array(template) },
    errors: [],
    summary: 'List templates',
    prose:
      'Those the plan may launch: the service’s own, then what the account published. `X-GC-Incomplete` marks a short list: hosts that did not answer may have more.',
    source: 'Part 4, Templates',
  },
  getTemplateSchema: {
    method: 'GET',
    path: '/templates/schema',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    answer: {
      status: 200,
      schema: z.looseObject({ $id: z.string() }).meta({ id: 'JsonSchema' }),
    },
    errors: [],
    summary: 'Read the JSON Schema of template documents',
    prose: 'Its `$id` is its own address. Made from what documents are checked against.',
    source,
  },
  validateTemplate: {
    method: 'POST',
    path: '/templates/validate',
    role: 'viewer',
    reach: 'scope',
    cost: costs.document,
    document,
    answer: { status: 200, schema: validated },
    errors: ['document_empty', 'documents_busy'],
    summary: 'Check a template document',
    prose:
      'The body is the document, JSON or YAML, whatever its content type. Tells every problem at once, or the canonical form with its digests. Checks the document alone: neither namespace nor family nor plan, nor whether the reference is taken. Of YAML it takes maps, lists and scalars in one document; anchors, aliases, tags, merge keys and keys that are there twice are problems.',
    source,
  },
  publishTemplate: {
    method: 'POST',
    path: '/templates',
    role: 'member',
    reach: 'account',
    cost: costs.document,
    document,
    answer: { status: 201, also: 200, schema: published },
    errors: [
      'document_empty',
      'documents_busy',
      'document_invalid',
      'template_namespace',
      'template_ref_taken',
      'template_ref_retired',
      'template_limit',
      'template_refs_limit',
    ],
    summary: 'Publish a template',
    prose: `\`metadata.namespace\` is the account’s id. A reference stays what it is: the same document again is 200 and changes nothing, another one is refused, and so is any after it was retired. An account has at most ${limits.templatesLive} published references, and claims at most ${limits.templatesEver} in all its time.`,
    source,
  },
  getTemplate: {
    method: 'GET',
    path: '/templates/{namespace}/{name}',
    role: 'viewer',
    reach: 'scope',
    cost: costs.readOne,
    query: atVersion,
    answer: { status: 200, schema: published },
    errors: ['query_refused', 'template_unknown', 'template_retired', 'account_wide_only'],
    summary: 'Read a published template',
    prose:
      'Without `version` the highest one that is not retired. A confined key reads those of `system` only.',
    source,
  },
  retireTemplate: {
    method: 'DELETE',
    path: '/templates/{namespace}/{name}',
    role: 'member',
    reach: 'account',
    cost: costs.readOne,
    query: atVersion,
    answer: { status: 200, schema: retired },
    errors: ['query_refused', 'template_unknown', 'template_retired'],
    summary: 'Retire a published template',
    prose:
      'Without `version` every version of the name. For good: a retired reference is never published again. Computers made from it stay as they are.',
    source,
  },
});
