// Workspaces in SQL. Every statement is bounded by the account and by the workspace a key is confined to.

import { isId } from '@cubicle/contract/ids.ts';
import type { Role } from '@cubicle/contract/route.ts';
import { type Database, only, type Runner, sql } from './database.ts';
import { gathered } from './gather.ts';
import type { Scope } from './scope.ts';

export interface WorkspaceRow {
  id: string;
  name: string;
  created_at: Date;
}

export interface MemberRow {
  user_id: string;
  email: string;
  name: string | null;
  role: Role;
  accepted_at: Date;
  suspended: boolean;
  seat_suspended: boolean;
}

const list = sql(`
  SELECT id, name, created_at FROM workspaces
  WHERE account_id = $1 AND ($2::text IS NULL OR id = $2)
  ORDER BY seq`);

export async function listWorkspaces(db: Runner, scope: Scope): Promise<WorkspaceRow[]> {
  return db.run(list, [scope.accountId, scope.workspaceId]);
}

const see = sql(`
  SELECT FROM workspaces WHERE id = $3 AND account_id = $1 AND ($2::text IS NULL OR id = $2)`);

export async function seesWorkspace(db: Runner, scope: Scope, id: string): Promise<boolean> {
  if (!isId('workspace', id)) return false;
  return (await db.run(see, [scope.accountId, scope.workspaceId, id])).length > 0;
}

// One index look-up per ask, whatever the planner believes about the size of the table.
const findMany = sql(`
  SELECT asked.n::int AS n, found.id, found.name, found.created_at
  FROM unnest($1::text[], $2::text[], $3::text[])
    WITH ORDINALITY AS asked(account_id, confined_to, id, n),
  LATERAL (
    SELECT w.id, w.name, w.created_at FROM workspaces w
    WHERE w.id = asked.id AND w.account_id = asked.account_id
      AND (asked.confined_to IS NULL OR w.id = asked.confined_to)
    LIMIT 1
  ) AS found`);

/** The hot read: concurrent ones travel together. */
export function workspaceFinder(
  database: Database,
): (ask: { scope: Scope; id: string }) => Promise<WorkspaceRow | undefined> {
  return gathered(async (asks) => {
    const rows = await database.run<WorkspaceRow & { n: number }>(findMany, [
      asks.map(({ scope }) => scope.accountId),
      asks.map(({ scope }) => scope.workspaceId),
      asks.map(({ id }) => id),
    ]);
    const answers = Array.from<WorkspaceRow | undefined>({ length: asks.length });
    for (const { n, ...row } of rows) answers[n - 1] = row;
    return answers;
  });
}

const count = sql('SELECT count(*) AS count FROM workspaces WHERE account_id = $1');

export async function countWorkspaces(tx: Runner, accountId: string): Promise<number> {
  return only(await tx.run<{ count: number }>(count, [accountId])).count;
}

const insert = sql(`
  INSERT INTO workspaces (id, account_id, name) VALUES ($1, $2, $3)
  RETURNING id, name, created_at`);

export async function insertWorkspace(
  tx: Runner,
  workspace: { id: string; accountId: string; name: string },
): Promise<WorkspaceRow> {
  const values = [workspace.id, workspace.accountId, workspace.name];
  return only(await tx.run<WorkspaceRow>(insert, values));
}

const rename = sql(`
  UPDATE workspaces SET name = $3
  WHERE account_id = $1 AND id = $2
  RETURNING id, name, created_at`);

export async function renameWorkspace(
  tx: Runner,
  accountId: string,
  id: string,
  name: string,
): Promise<WorkspaceRow | undefined> {
  return (await tx.run<WorkspaceRow>(rename, [accountId, id, name]))[0];
}

const remove = sql('DELETE FROM workspaces WHERE account_id = $1 AND id = $2 RETURNING id');

/** The keys confined to it must be gone already. */
export async function deleteWorkspace(tx: Runner, accountId: string, id: string): Promise<boolean> {
  return (await tx.run(remove, [accountId, id])).length > 0;
}

const members = sql(`
  SELECT u.id AS user_id, u.email, u.name, m.role, m.accepted_at, u.suspended, m.seat_suspended
  FROM members m JOIN users u ON u.id = m.user_id
  WHERE m.account_id = $1
  ORDER BY m.accepted_at, m.user_id`);

export async function listMembers(db: Runner, scope: Scope): Promise<MemberRow[]> {
  return db.run(members, [scope.accountId]);
}
