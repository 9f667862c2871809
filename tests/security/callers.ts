// Everybody who may knock: each role with each kind of key, in each state a credential can be in.
// One account per state, so that what one state spends or changes is not mistaken for another's.

import { randomBytes } from 'node:crypto';
import { mintKey, newId } from '../../packages/server/app/secrets.ts';
import { insertApiKey } from '../../packages/server/db/api-keys.ts';
import { insertWorkspace } from '../../packages/server/db/workspaces.ts';
import type { Answer, Sending } from '../support/client.ts';
import { newEmail, type TestService } from '../support/service.ts';

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

export const roles = ['viewer', 'member', 'owner'] as const;
export type Role = (typeof roles)[number];

export interface Holder {
  readonly accountId: string;
  readonly userId: string;
  readonly email: string;
  readonly role: Role;
}

/** One account in one state: a person of each role, and a workspace that confined keys are confined to. */
export interface World {
  readonly state: State;
  readonly service: TestService;
  readonly accountId: string;
  readonly home: string;
  readonly people: readonly Holder[];
  readonly callers: readonly Caller[];
}

export interface Key {
  readonly id: string;
  readonly raw: string;
  /** The workspace it is confined to. */
  readonly confinedTo: string | null;
  readonly manageKeys: boolean;
}

export interface Caller {
  readonly label: string;
  readonly world: Omit<World, 'callers'>;
  readonly holder: Holder;
  readonly key: Key;
  send(method: string, path: string, sending?: Sending): Promise<Answer>;
}

/** Straight into the table: the rules about who may make keys are not what prepares a test of them. */
export async function giveKey(
  service: TestService,
  { accountId, userId }: Pick<Holder, 'accountId' | 'userId'>,
  { confinedTo, manageKeys }: Pick<Key, 'confinedTo' | 'manageKeys'>,
): Promise<Key> {
  const { raw, hash, prefix } = mintKey();
  const { id } = await insertApiKey(service.database, {
    id: newId('apiKey'),
    hash,
    prefix,
    name: null,
    accountId,
    userId,
    workspaceId: confinedTo,
    manageKeys,
    mintedByKeyId: null,
  });
  return { id, raw, confinedTo, manageKeys };
}

export async function giveWorkspace(service: TestService, accountId: string): Promise<string> {
  const id = newId('workspace');
  await insertWorkspace(service.database, { id, accountId, name: newName() });
  return id;
}

export function newName(): string {
  return `w ${randomBytes(8).toString('hex')}`;
}

export async function makeWorld(service: TestService, state: State): Promise<World> {
  const { account } = await service.account();
  const accountId = account.id;
  const home = await giveWorkspace(service, accountId);
  // Not to be seen with a key confined to the other.
  await giveWorkspace(service, accountId);
  const people: Holder[] = [];
  for (const role of roles) {
    const email = newEmail();
    const { user } = await service.operator.addMember({ account: accountId, email, role });
    people.push({ accountId, userId: user.id, email, role });
  }
  const world = { state, service, accountId, home, people };
  const callers: Caller[] = [];
  for (const holder of people) {
    for (const confinedTo of [null, home]) {
      for (const manageKeys of [false, true]) {
        const key = await giveKey(service, holder, { confinedTo, manageKeys });
        callers.push(...credentials(world, holder, key));
      }
    }
  }
  for (const holder of people) await bringAbout(world, holder, callers);
  return { ...world, callers };
}

async function bringAbout(
  { state, service, accountId }: Omit<World, 'callers'>,
  holder: Holder,
  callers: readonly Caller[],
): Promise<void> {
  const { operator } = service;
  const { email } = holder;
  if (state === 'account suspended') await operator.setAccount(accountId, { suspended: true });
  if (state === 'member removed') await operator.removeMember(accountId, email);
  if (state === 'person suspended') await operator.setUser(email, { suspended: true });
  if (state === 'seat suspended')
    await operator.setMember(accountId, email, { seatSuspended: true });
  if (state === 'e-mail unverified') await operator.setUser(email, { verified: false });
  if (state === 'key revoked') {
    for (const caller of callers) {
      if (caller.holder === holder) await operator.revokeKey(caller.key.id);
    }
  }
}

/** The callers that one key makes in this state: one, or one per way of writing it wrongly. */
function credentials(world: Omit<World, 'callers'>, holder: Holder, key: Key): Caller[] {
  const scope = key.confinedTo === null ? 'account-wide' : 'confined';
  const manager = key.manageKeys ? ' managing' : '';
  const who = `${world.state}, ${holder.role}, ${scope}${manager} key`;
  if (world.state !== 'no credential' && world.state !== 'malformed credential') {
    return [callerWith(who, world, holder, key, `Bearer ${key.raw}`)];
  }
  // These are refused before anything is known of a holder: one of them will do.
  if (holder.role !== 'owner' || key.confinedTo !== null || !key.manageKeys) return [];
  if (world.state === 'no credential') return [callerWith(who, world, holder, key, undefined)];
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

export function callerWith(
  label: string,
  world: Omit<World, 'callers'>,
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
