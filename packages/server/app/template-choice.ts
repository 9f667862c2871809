// Which template is meant: by a name, a reference, or nothing at all (wire-computers section 4), and which
// image a computer of it is made from (Part 4, Builds 10).

import { hash } from 'node:crypto';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { Template } from '@cubicle/contract/resources/templates.ts';
import {
  namePattern,
  parseRef,
  type TemplateDocument,
} from '@cubicle/contract/template-document.ts';
import { isFamilyBuilt, type LaunchRow, makingOf } from '../db/builds.ts';
import type { Database, Runner } from '../db/database.ts';
import { type TemplateRow, templatesNamed } from '../db/templates.ts';
import { rowOf } from '../documents/read.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Authority } from './authority.ts';
import { baseOf, familyOf } from './build-plan.ts';
import type { Preparation, SystemBuilds } from './system-builds.ts';
import {
  builtBySystem,
  defaultTemplate,
  hasImage,
  publishedBySystem,
  systemTemplates,
} from './system-templates.ts';

/** A template of the service's by its name, or a document of the account's. */
export interface Choice {
  /** What a computer's record says: the name of the service's own, the whole reference of another. */
  readonly name: string;
  readonly template: Template;
  /** Of the account's. */
  readonly published: TemplateRow | undefined;
}

/** What a computer is made from: an image of the host's own, or what a build made on a certain host. */
export interface Image {
  readonly template: string;
  readonly build: { readonly id: string; readonly hostId: string } | undefined;
}

/** Documents that add nothing refer to their parents; so deep and no deeper. */
const mostParents = 8;

export class TemplateChoice {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #system: SystemBuilds;

  constructor(database: Database, fleet: Fleet, system: SystemBuilds) {
    this.#database = database;
    this.#fleet = fleet;
    this.#system = system;
  }

  /** What a create begins with, by the name it gave. */
  async of({ accountId }: Authority, named: string | undefined): Promise<Choice> {
    if (named === undefined) return ofService(defaultTemplate);
    if (!named.includes('/')) return ofService(await this.#shortNamed(named));
    const ref = parseRef(named);
    if (ref === undefined) throw new Refusal('template_unknown');
    const { namespace, name, version } = ref;
    if (namespace === 'system') {
      const found = publishedBySystem(name, version);
      if (found === undefined) throw new Refusal('template_unknown');
      return ofService(found.template);
    }
    const rows = await namedTemplates(this.#database, accountId, namespace, name);
    const published = pick(rows, version);
    const template = rowOf(documentOf(published));
    return { name: template.ref, template, published };
  }

  /** Throws while it has none, and says what is missing; also where its computers would go by a proxy. */
  async imageOf(
    { accountId }: Authority,
    { name, published }: Choice,
    isProxied: boolean,
  ): Promise<Image> {
    if (published === undefined) return this.#systemImage(accountId, name, name);
    let row = published;
    for (let parents = 0; parents < mostParents; parents += 1) {
      const document = documentOf(row);
      requireFamily(accountId, document);
      if (isProxied && document.spec.browser_proxy) throw new Refusal('proxy_unsupported');
      if (isBuilt(document)) return this.#builtImage(accountId, name, row);
      const from = parseRef(document.spec.from ?? baseOf(document));
      if (from?.namespace === 'system') {
        const found = publishedBySystem(from.name, from.version);
        if (found === undefined) throw new Refusal('template_unknown');
        return this.#systemImage(accountId, name, from.name);
      }
      const { namespace = '', name: own = '', version } = from ?? {};
      row = pick(await namedTemplates(this.#database, accountId, namespace, own), version);
    }
    throw new Refusal('template_unknown');
  }

  async #systemImage(accountId: string, name: string, template: string): Promise<Image> {
    if (hasImage(template)) return { template, build: undefined };
    const document = builtBySystem(template);
    if (document === undefined) throw new Refusal('template_unknown');
    const found = await this.#system.imageOf(document);
    if ('state' in found) throw imagePreparing(accountId, name, found);
    return imageFrom(found);
  }

  async #builtImage(accountId: string, name: string, row: TemplateRow): Promise<Image> {
    const { latest, image } = await makingOf(this.#database, accountId, row.doc_digest);
    if (image !== undefined) return imageFrom(image);
    if (latest?.status === 'running') throw imagePreparing(accountId, name);
    const family = familyOf(documentOf(row));
    if (await isFamilyBuilt(this.#database, accountId, family)) {
      throw new Refusal('template_image_absent');
    }
    throw new Refusal('template_not_built', { family });
  }

  /** Never one of the account's; while a host is away it cannot be told that none has it. */
  async #shortNamed(named: string): Promise<Template> {
    const found = systemTemplates.find(({ name }) => name === named);
    if (found !== undefined) return found;
    if ((await this.#fleet.silentHosts()) > 0) throw new Refusal('templates_incomplete');
    return defaultTemplate;
  }
}

/** How long it may be until the image is there: one takes two minutes on a quiet machine. */
const preparingS = '15';

export function imagePreparing(
  accountId: string,
  template: string,
  preparation: Preparation = { state: 'preparing', error: '' },
): Refusal {
  const told = { template_transfer: transferOf(accountId, template), preparation };
  return new Refusal('template_image_preparing', {}, told, { 'Retry-After': preparingS });
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

function ofService(template: Template): Choice {
  return { name: template.name, template, published: undefined };
}

function imageFrom({ image_id: id, host_id: hostId, parent }: LaunchRow): Image {
  return { template: parent, build: { id, hostId } };
}

/** Whether a document has an image of its own; one that adds nothing has its parent's. */
function isBuilt({ spec: { build = [], env } }: TemplateDocument): boolean {
  return build.length > 0 || env !== undefined;
}

function requireFamily(accountId: string, document: TemplateDocument): void {
  const own = `golden-${accountId}`;
  const family = familyOf(document);
  if (family !== own && !family.startsWith(`${own}-`)) throw new Refusal('template_family');
}
