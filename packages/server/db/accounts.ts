// Accounts, people and memberships in SQL.

import type { Role } from '@cubicle/contract/route.ts';
import { only, type Runner, sql } from './database.ts';

export interface AccountRow {
  id: string;
  name: string | null;
  plan_id: string;
  suspended: boolean;
  created_at: Date;
}

export interface UserRow {
  id: string;
  email: string;
  name: string | null;
  verified: boolean;
  suspended: boolean;
}

const accountColumns = 'id, name, plan_id, suspended, created_at';
const userColumns = 'id, email, name, verified, suspended';

const insertOne = sql(
  `INSERT INTO accounts (id, name, plan_id) VALUES ($1, $2, $3) RETURNING ${accountColumns}`,
);

export async function insertAccount(
  tx: Runner,
  account: { id: string; name: string; planId: string },
): Promise<AccountRow> {
  return only(await tx.run<AccountRow>(insertOne, [account.id, account.name, account.planId]));
}

const listAll = sql(`SELECT ${accountColumns} FROM accounts ORDER BY created_at, id`);

export async function listAccounts(db: Runner): Promise<AccountRow[]> {
  return db.run(listAll, []);
}

const anyAccount = sql('SELECT FROM accounts LIMIT 1');
// Two services starting on one empty database make one first account.
const holdFirstAccount = sql("SELECT pg_advisory_xact_lock(hashtext('cubicle first account'))");

/** True when the database has no account yet; no other transaction can make one until this one ends. */
export async function isEmptyService(tx: Runner): Promise<boolean> {
  await tx.run(holdFirstAccount, []);
  return (await tx.run(anyAccount, [])).length === 0;
}

const findOne = sql(`SELECT ${accountColumns} FROM accounts WHERE id = $1`);

export async function findAccount(db: Runner, id: string): Promise<AccountRow | undefined> {
  return (await db.run<AccountRow>(findOne, [id]))[0];
}

const updateOne = sql(`
  UPDATE accounts SET plan_id = coalesce($2, plan_id), suspended = coalesce($3, suspended)
  WHERE id = $1 RETURNING ${accountColumns}`);

export async function updateAccount(
  tx: Runner,
  id: string,
  change: { planId?: string | undefined; suspended?: boolean | undefined },
): Promise<AccountRow | undefined> {
  const values = [id, change.planId ?? null, change.suspended ?? null];
  return (await tx.run<AccountRow>(updateOne, values))[0];
}

const findByEmail = sql(`SELECT ${userColumns} FROM users WHERE lower(email) = lower($1)`);

export async function findUser(db: Runner, email: string): Promise<UserRow | undefined> {
  return (await db.run<UserRow>(findByEmail, [email]))[0];
}

const findById = sql(`SELECT ${userColumns} FROM users WHERE id = $1`);

export async function findUserById(db: Runner, id: string): Promise<UserRow | undefined> {
  return (await db.run<UserRow>(findById, [id]))[0];
}

// The update that changes nothing makes the row of somebody known come back too, locked.
const ensure = sql(`
  INSERT INTO users (id, email, verified) VALUES ($1, $2, true)
  ON CONFLICT (lower(email)) DO UPDATE SET email = users.email
  RETURNING ${userColumns}`);

/** The person with this e-mail address, made if new. The operator vouches for the address. */
export async function ensureUser(tx: Runner, id: string, email: string): Promise<UserRow> {
  return only(await tx.run<UserRow>(ensure, [id, email]));
}

const updatePerson = sql(`
  UPDATE users SET name = coalesce($2, name), verified = coalesce($3, verified),
    suspended = coalesce($4, suspended)
  WHERE lower(email) = lower($1) RETURNING ${userColumns}`);

export async function updateUser(
  tx: Runner,
  email: string,
  change: {
    name?: string | undefined;
    verified?: boolean | undefined;
    suspended?: boolean | undefined;
  },
): Promise<UserRow | undefined> {
  const values = [email, change.name ?? null, change.verified ?? null, change.suspended ?? null];
  return (await tx.run<UserRow>(updatePerson, values))[0];
}

const insertMembership = sql('INSERT INTO members (account_id, user_id, role) VALUES ($1, $2, $3)');

/** Violates `members_already` when they are one. */
export async function insertMember(
  tx: Runner,
  accountId: string,
  userId: string,
  role: Role,
): Promise<void> {
  await tx.run(insertMembership, [accountId, userId, role]);
}

export interface MembershipRow {
  role: Role;
  seat_suspended: boolean;
}

const updateMembership = sql(`
  UPDATE members SET role = coalesce($3, role), seat_suspended = coalesce($4, seat_suspended)
  WHERE account_id = $1 AND user_id = $2 RETURNING role, seat_suspended`);

export async function updateMember(
  tx: Runner,
  accountId: string,
  userId: string,
  change: { role?: Role | undefined; seatSuspended?: boolean | undefined },
): Promise<MembershipRow | undefined> {
  const values = [accountId, userId, change.role ?? null, change.seatSuspended ?? null];
  return (await tx.run<MembershipRow>(updateMembership, values))[0];
}

const deleteMembership = sql(
  'DELETE FROM members WHERE account_id = $1 AND user_id = $2 RETURNING role',
);

export async function deleteMember(
  tx: Runner,
  accountId: string,
  userId: string,
): Promise<boolean> {
  return (await tx.run(deleteMembership, [accountId, userId])).length > 0;
}

const isOne = sql('SELECT FROM members WHERE account_id = $1 AND user_id = $2');

export async function isMember(db: Runner, accountId: string, userId: string): Promise<boolean> {
  return (await db.run(isOne, [accountId, userId])).length > 0;
}
