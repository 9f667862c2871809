// Which template is meant: by a name, a reference, or nothing at all (wire-computers section 4).

import { hash } from 'node:crypto';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { Template } from '@cubicle/contract/resources/templates.ts';
import {
  namePattern,
  parseRef,
  type TemplateDocument,
} from '@cubicle/contract/template-document.ts';
import type { Database, Runner } from '../db/database.ts';
import { type TemplateRow, templatesNamed } from '../db/templates.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Authority } from './authority.ts';
import { defaultTemplate, publishedBySystem, systemTemplates } from './system-templates.ts';

export class TemplateChoice {
  readonly #database: Database;
  readonly #fleet: Fleet;

  constructor(database: Database, fleet: Fleet) {
    this.#database = database;
    this.#fleet = fleet;
  }

  /** What a create begins with, by the name it gave. */
  async of({ accountId }: Authority, named: string | undefined): Promise<Template> {
    if (named === undefined) return defaultTemplate;
    if (!named.includes('/')) return this.#shortNamed(named);
    const ref = parseRef(named);
    if (ref === undefined) throw new Refusal('template_unknown');
    const { namespace, name, version } = ref;
    if (namespace === 'system') {
      const found = publishedBySystem(name, version);
      if (found === undefined) throw new Refusal('template_unknown');
      return found.template;
    }
    const rows = await namedTemplates(this.#database, accountId, namespace, name);
    return requireImage(accountId, documentOf(pick(rows, version)));
  }

  /** Never one of the account's; while a host is away it cannot be told that none has it. */
  async #shortNamed(named: string): Promise<Template> {
    const found = systemTemplates.find(({ name }) => name === named);
    if (found !== undefined) return found;
    if ((await this.#fleet.silentHosts()) > 0) throw new Refusal('templates_incomplete');
    return defaultTemplate;
  }
}

/**
 * What a create that has to wait for its image goes on with. It grants nothing: it only says that the
 * caller has asked before, for this template.
 */
export function transferOf(accountId: string, template: string): string {
  return `ttr_${hash('sha256', `${accountId} ${template}`, 'hex').slice(0, 32)}`;
}

/** What the account published under a name, retired ones too; nothing under another's namespace. */
export async function namedTemplates(
  db: Runner,
  accountId: string,
  namespace: string,
  name: string,
): Promise<TemplateRow[]> {
  const possible = namespace === accountId && namePattern.test(name);
  return possible ? templatesNamed(db, accountId, name) : [];
}

export function documentOf(row: TemplateRow): TemplateDocument {
  return JSON.parse(row.document) as TemplateDocument;
}

/** The version asked for, or the highest one that stands. */
export function pick(rows: readonly TemplateRow[], version: string | undefined): TemplateRow {
  const meant = rows.filter((row) => version === undefined || row.version === version);
  const found = meant.find((row) => row.retired_at === null);
  if (found !== undefined) return found;
  const last = meant
    .map((row) => row.retired_at?.toISOString() ?? '')
    .toSorted()
    .at(-1);
  if (last === undefined) throw new Refusal('template_unknown');
  throw new Refusal('template_retired', { at: last });
}

/** Nothing builds images of documents yet, so that no family has one (wire-account section 1). */
function requireImage(accountId: string, { spec }: TemplateDocument): never {
  const own = `golden-${accountId}`;
  const family = spec.family ?? own;
  if (family !== own && !family.startsWith(`${own}-`)) throw new Refusal('template_family');
  throw new Refusal('template_not_built', { family });
}
