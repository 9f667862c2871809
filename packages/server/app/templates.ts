// Templates: the service's own, and what accounts publish. Part 4 Templates, wire-account section 1.

import { Refusal } from '@cubicle/contract/errors.ts';
import { limits } from '@cubicle/contract/limits.ts';
import type {
  PublishedTemplate,
  RetiredTemplates,
  Template,
  ValidatedTemplate,
} from '@cubicle/contract/resources/templates.ts';
import type { Database, Runner } from '../db/database.ts';
import { planOfAccount } from '../db/plans.ts';
import * as store from '../db/templates.ts';
import { readGiven, requireValid } from '../documents/given.ts';
import { rowOf } from '../documents/read.ts';
import type { DocumentReader } from '../documents/reader.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { type Authority, changeAs } from './authority.ts';
import { admits } from './catalog.ts';
import { publishedBySystem, systemTemplates } from './system-templates.ts';
import { documentOf, namedTemplates, pick } from './template-choice.ts';

export interface TemplateList {
  readonly templates: Template[];
  /** How many hosts did not answer; undefined when all did. */
  readonly incomplete: number | undefined;
}

export class Templates {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #reader: DocumentReader;

  constructor(database: Database, fleet: Fleet, reader: DocumentReader) {
    this.#database = database;
    this.#fleet = fleet;
    this.#reader = reader;
  }

  async list({ accountId }: Authority): Promise<TemplateList> {
    const [plan, published, silent] = await Promise.all([
      planOfAccount(this.#database, accountId),
      store.liveTemplates(this.#database, accountId),
      this.#fleet.silentHosts(),
    ]);
    const rows = [...systemTemplates, ...published.map((row) => rowOf(documentOf(row)))];
    return {
      templates: rows.filter((row) => plan !== undefined && admits(plan, row)),
      incomplete: silent > 0 ? silent : undefined,
    };
  }

  async validate(bytes: Buffer): Promise<ValidatedTemplate> {
    const reading = await readGiven(this.#reader, bytes);
    if (!reading.valid) {
      const { valid, problems, ref } = reading;
      return { valid, problems: [...problems], ...(ref !== undefined && { ref }) };
    }
    const { buildDigest, buildDigestNeeds } = reading;
    return {
      valid: true,
      ref: reading.ref,
      doc_digest: reading.docDigest,
      ...(buildDigest !== undefined && { build_digest: buildDigest }),
      ...(buildDigestNeeds !== undefined && { build_digest_needs: buildDigestNeeds }),
      canonical: reading.canonical,
      template: rowOf(reading.document),
    };
  }

  /** `made` is false where the same document is published already. */
  async publish(
    authority: Authority,
    bytes: Buffer,
  ): Promise<{ made: boolean; published: PublishedTemplate }> {
    const reading = requireValid(await readGiven(this.#reader, bytes));
    const { accountId } = authority;
    const { namespace, name, version } = reading.document.metadata;
    if (namespace !== accountId) throw new Refusal('template_namespace');
    return changeAs(this.#database, authority, 'member', async (tx) => {
      const before = await store.templatesNamed(tx, accountId, name);
      const same = before.find((row) => row.version === version);
      if (same !== undefined) {
        requireSame(same, reading.docDigest);
        return { made: false, published: publishedOf(same, before, accountId) };
      }
      await requireRoom(tx, accountId);
      const { canonical: document, docDigest: doc_digest } = reading;
      await store.insertTemplate(tx, accountId, { name, version, document, doc_digest });
      const now = await store.templatesNamed(tx, accountId, name);
      const row = now.find((one) => one.version === version) as store.TemplateRow;
      return { made: true, published: publishedOf(row, now, accountId) };
    });
  }

  /** A confined key reads the service's own only. */
  async get(
    { accountId, workspaceId }: Authority,
    namespace: string,
    name: string,
    version: string | undefined,
  ): Promise<PublishedTemplate> {
    if (namespace === 'system') {
      const found = publishedBySystem(name, version);
      if (found === undefined) throw new Refusal('template_unknown');
      return found;
    }
    if (workspaceId !== null) throw new Refusal('account_wide_only');
    const rows = await namedTemplates(this.#database, accountId, namespace, name);
    return publishedOf(pick(rows, version), rows, accountId);
  }

  async retire(
    authority: Authority,
    namespace: string,
    name: string,
    version: string | undefined,
  ): Promise<RetiredTemplates> {
    const { accountId } = authority;
    return changeAs(this.#database, authority, 'member', async (tx) => {
      const rows = await namedTemplates(tx, accountId, namespace, name);
      pick(rows, version);
      const gone = rows.filter(
        (row) => row.retired_at === null && (version === undefined || row.version === version),
      );
      const at = new Date();
      await store.retireTemplates(tx, accountId, name, version, at);
      const { live, ever } = await store.countTemplates(tx, accountId);
      return {
        retired: gone.map((row) => `${accountId}/${name}@${row.version}`),
        retired_at: at.toISOString(),
        versions: liveVersions(rows.filter((row) => !gone.includes(row))),
        templates: live,
        refs_claimed: ever,
      };
    });
  }
}

function requireSame(row: store.TemplateRow, digest: string): void {
  if (row.retired_at !== null) {
    throw new Refusal('template_ref_retired', { at: row.retired_at.toISOString() });
  }
  if (row.doc_digest !== digest) throw new Refusal('template_ref_taken');
}

async function requireRoom(tx: Runner, accountId: string): Promise<void> {
  const { live, ever } = await store.countTemplates(tx, accountId);
  if (live >= limits.templatesLive) {
    throw new Refusal('template_limit', { limit: limits.templatesLive });
  }
  if (ever >= limits.templatesEver) {
    throw new Refusal('template_refs_limit', { limit: limits.templatesEver });
  }
}

function liveVersions(rows: readonly store.TemplateRow[]): string[] {
  return rows.filter((row) => row.retired_at === null).map((row) => row.version);
}

function publishedOf(
  row: store.TemplateRow,
  named: readonly store.TemplateRow[],
  accountId: string,
): PublishedTemplate {
  const document = documentOf(row);
  return {
    ref: `${accountId}/${row.name}@${row.version}`,
    doc_digest: row.doc_digest,
    document,
    template: rowOf(document),
    versions: liveVersions(named),
    published_at: row.published_at.toISOString(),
  };
}
