// Published templates in SQL. Their namespace is the account.

import { only, type Runner, sql } from './database.ts';

export interface TemplateRow {
  name: string;
  version: string;
  /** Canonical. */
  document: string;
  doc_digest: string;
  published_at: Date;
  retired_at: Date | null;
}

const columns = `
  name, array_to_string(version, '.') AS version, document, doc_digest, published_at, retired_at`;

const live = sql(`
  SELECT ${columns} FROM templates WHERE account_id = $1 AND retired_at IS NULL
  ORDER BY name COLLATE "C", templates.version DESC`);

export async function liveTemplates(db: Runner, accountId: string): Promise<TemplateRow[]> {
  return db.run(live, [accountId]);
}

const named = sql(`
  SELECT ${columns} FROM templates WHERE account_id = $1 AND name = $2
  ORDER BY templates.version DESC`);

/** Every version, retired ones too, the highest first. */
export async function templatesNamed(
  db: Runner,
  accountId: string,
  name: string,
): Promise<TemplateRow[]> {
  return db.run(named, [accountId, name]);
}

const count = sql(`
  SELECT count(*) AS ever, count(*) FILTER (WHERE retired_at IS NULL) AS live
  FROM templates WHERE account_id = $1`);

export async function countTemplates(
  tx: Runner,
  accountId: string,
): Promise<{ ever: number; live: number }> {
  return only(await tx.run<{ ever: number; live: number }>(count, [accountId]));
}

const insert = sql(`
  INSERT INTO templates (account_id, name, version, document, doc_digest)
  VALUES ($1, $2, string_to_array($3, '.')::int[], $4, $5)`);

export async function insertTemplate(
  tx: Runner,
  accountId: string,
  template: Pick<TemplateRow, 'name' | 'version' | 'document' | 'doc_digest'>,
): Promise<void> {
  const { name, version, document, doc_digest } = template;
  await tx.run(insert, [accountId, name, version, document, doc_digest]);
}

const retire = sql(`
  UPDATE templates SET retired_at = $4
  WHERE account_id = $1 AND name = $2 AND retired_at IS NULL
    AND ($3::text IS NULL OR version = string_to_array($3, '.')::int[])`);

export async function retireTemplates(
  tx: Runner,
  accountId: string,
  name: string,
  version: string | undefined,
  at: Date,
): Promise<void> {
  await tx.run(retire, [accountId, name, version ?? null, at]);
}
