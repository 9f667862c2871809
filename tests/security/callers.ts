// Everybody who may knock: each role with each kind of key, in each state a credential can be in.
// One account per state, so that what one state spends or changes is not mistaken for another's.

import { randomBytes } from 'node:crypto';
import { mintKey, newId } from '../../packages/server/app/secrets.ts';
import { only, sql } from '../../packages/server/db/database.ts';
import { insertSecret } from '../../packages/server/db/secrets.ts';
import { insertWorkspace } from '../../packages/server/db/workspaces.ts';
import type { Answer, Sending } from '../support/client.ts';
import { newEmail, type TestService } from '../support/service.ts';
import { noComputers, type Shared, sharedComputers } from './shared-computers.ts';

export const states = [
  'plain',
  'account suspended',
  'member removed',
  'person suspended',
  'seat suspended',
  'e-mail unverified',
  'key revoked',
  'no credential',
  'malformed credential',
] as const;
export type State = (typeof states)[number];

/** Whether anything is charged at all: not where the credential or its holder no longer stands. */
export function isMetered(state: State): boolean {
  return state === 'plain' || state === 'account suspended' || state === 'e-mail unverified';
}

export const roles = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof roles)[number];

export interface Holder {
  readonly accountId: string;
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
}

/** One account in one state, and the workspace that its confined keys are confined to. */
export interface World {
  readonly state: State;
  readonly service: TestService;
  readonly accountId: string;
  readonly home: string;
  readonly shared: Shared;
  /** One of the account, one of the workspace. */
  readonly secrets: { readonly account: string; readonly home: string };
  readonly callers: readonly Caller[];
}

export interface Key {
  readonly id: string;
  readonly raw: string;
  /** The workspace it is confined to. */
  readonly confinedTo: string | null;
  readonly manageKeys: boolean;
}

/** Somebody with a key. Each is a person of their own, so that no two see each other's keys. */
export interface Caller {
  readonly label: string;
  readonly world: World;
  readonly holder: Holder;
  readonly key: Key;
  send(method: string, path: string, sending?: Sending): Promise<Answer>;
}

const insertKeys = sql(`
  INSERT INTO api_keys (id, hash, prefix, account_id, user_id, workspace_id, manage_keys)
  SELECT new.id, decode(new.hash, 'hex'), new.prefix, $4, $5, $6, $7
  FROM unnest($1::text[], $2::text[], $3::text[]) AS new(id, hash, prefix)`);

/** Straight into the table: the rules about who may make keys are not what prepares a test of them. */
async function giveKeys(
  count: number,
  service: TestService,
  { accountId, userId }: Holder,
  { confinedTo, manageKeys }: Pick<Key, 'confinedTo' | 'manageKeys'>,
): Promise<Key[]> {
  const made = Array.from({ length: count }, () => ({ id: newId('apiKey'), ...mintKey() }));
  const columns = (['id', 'hash', 'prefix'] as const).map((name) => made.map((key) => key[name]));
  const values = [...columns, accountId, userId, confinedTo, manageKeys];
  await service.database.run(insertKeys, values);
  return made.map(({ id, raw }) => ({ id, raw, confinedTo, manageKeys }));
}

export async function giveKey(
  service: TestService,
  holder: Holder,
  wish: Pick<Key, 'confinedTo' | 'manageKeys'>,
): Promise<Key> {
  return only(await giveKeys(1, service, holder, wish));
}

export async function giveWorkspace(service: TestService, accountId: string): Promise<string> {
  const id = newId('workspace');
  await insertWorkspace(service.database, { id, accountId, name: newName() });
  return id;
}

/** Straight into the table, in the scope of a workspace or of the account. */
export async function giveSecret(
  { database }: TestService,
  accountId: string,
  workspaceId: string | null,
): Promise<{ id: string; revision_id: string }> {
  return insertSecret(
    database,
    { accountId, workspaceId },
    {
      id: newId('secret'),
      name: newName(),
      revisionId: newId('secretRevision'),
      sealed: Buffer.from('sealed'),
    },
  );
}

export function newName(): string {
  return `w ${randomBytes(8).toString('hex')}`;
}

const removeKeys = sql('DELETE FROM api_keys WHERE id = ANY($1)');

/**
 * The caller with keys that were never used. The bucket of such a key is full, so its first answer is short
 * of the limit by exactly what the call cost, whatever time passes meanwhile. Whoever is not metered stays
 * as they are.
 */
export async function withFreshKeys(
  count: number,
  who: Caller,
  work: (fresh: (n: number) => Caller) => Promise<void>,
): Promise<void> {
  const { label, world, holder } = who;
  if (!isMetered(world.state)) return work(() => who);
  const keys = await giveKeys(count, world.service, holder, who.key);
  const callers = keys.map((key) => callerWith(label, world, holder, key, `Bearer ${key.raw}`));
  try {
    await work((n) => callers[n] as Caller);
  } finally {
    await world.service.database.run(removeKeys, [keys.map(({ id }) => id)]);
  }
}

export async function makeWorld(service: TestService, state: State): Promise<World> {
  const { account, key: first } = await service.account();
  const accountId = account.id;
  const home = await giveWorkspace(service, accountId);
  // Not to be seen with a key confined to the other.
  await giveWorkspace(service, accountId);
  const callers: Caller[] = [];
  const owner = { accountId, home, raw: first.raw };
  const admitted = state === 'plain' || state === 'e-mail unverified';
  const shared = admitted ? await sharedComputers(service, owner) : noComputers;
  const secrets = {
    account: (await giveSecret(service, accountId, null)).id,
    home: (await giveSecret(service, accountId, home)).id,
  };
  const world = { state, service, accountId, home, shared, secrets, callers };
  for (const role of roles) {
    for (const confinedTo of [null, home]) {
      for (const manageKeys of [false, true]) {
        const email = newEmail();
        const { user } = await service.operator.addMember({ account: accountId, email, role });
        const holder = { accountId, userId: user.id, email, role };
        const key = await giveKey(service, holder, { confinedTo, manageKeys });
        callers.push(...credentials(world, holder, key));
        // Theirs as well, but out of a confined key's sight.
        await giveKey(service, holder, { confinedTo: null, manageKeys: false });
        await bringAbout(world, holder, key);
      }
    }
  }
  if (state === 'account suspended') {
    await service.operator.setAccount(accountId, { suspended: true });
  }
  return world;
}

async function bringAbout(
  { state, service, accountId }: World,
  { email }: Holder,
  key: Key,
): Promise<void> {
  const { operator } = service;
  if (state === 'member removed') await operator.removeMember(accountId, email);
  if (state === 'person suspended') await operator.setUser(email, { suspended: true });
  if (state === 'seat suspended')
    await operator.setMember(accountId, email, { seatSuspended: true });
  if (state === 'e-mail unverified') await operator.setUser(email, { verified: false });
  if (state === 'key revoked') await operator.revokeKey(key.id);
}

/** The callers that one key makes in this state: one, or one per way of writing it wrongly. */
function credentials(world: World, holder: Holder, key: Key): Caller[] {
  const scope = key.confinedTo === null ? 'account-wide' : 'confined';
  const manager = key.manageKeys ? ' managing' : '';
  const who = `${world.state}, ${holder.role}, ${scope}${manager} key`;
  const { state } = world;
  if (state !== 'no credential' && state !== 'malformed credential') {
    return [callerWith(who, world, holder, key, `Bearer ${key.raw}`)];
  }
  // These are refused before anything is known of a holder: one of them will do.
  if (holder.role !== 'owner' || key.confinedTo !== null || !key.manageKeys) return [];
  if (state === 'no credential') return [callerWith(who, world, holder, key, undefined)];
  return malformed(key.raw).map((value) =>
    callerWith(`${who} sent as "${value}"`, world, holder, key, value),
  );
}

/** Credentials that are none, most of them one slip away from the owner's own key. */
function malformed(raw: string): string[] {
  const unknown = `com_${randomBytes(24).toString('hex')}`;
  return [
    raw,
    'Bearer',
    `Basic ${Buffer.from(`${raw}:`).toString('base64')}`,
    `Token ${raw}`,
    `Bearer ${raw} ${raw}`,
    `Bearer ${raw}0`,
    `Bearer ${raw.slice(0, -1)}`,
    `Bearer ${raw.replace('com_', 'COM_')}`,
    `Bearer "${raw}"`,
    `Bearer,${raw}`,
    `Bearer ${unknown}`,
    // An access token of a signed-in tool is no key (Part 5 rule 5).
    'Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1c3ItMSJ9.c2lnbmF0dXJl',
    `Bearer oauth_${raw.slice(4)}`,
  ];
}

function callerWith(
  label: string,
  world: World,
  holder: Holder,
  key: Key,
  authorization: string | undefined,
): Caller {
  const headers = authorization === undefined ? {} : { authorization };
  const client = world.service.as();
  return {
    label,
    world,
    holder,
    key,
    send: (method, path, sending) =>
      client.send(method, path, { ...sending, headers: { ...sending?.headers, ...headers } }),
  };
}
