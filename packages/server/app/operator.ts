// What the operator of a service may do to accounts, people, keys and plans. No caller of the API gets here.

import { isId } from '@cubicle/contract/ids.ts';
import type { Role } from '@cubicle/contract/route.ts';
import { apiKeyName } from '@cubicle/contract/text.ts';
import * as accounts from '../db/accounts.ts';
import { lockAccountRow } from '../db/authority.ts';
import { insertApiKey, revokeKeyById } from '../db/api-keys.ts';
import { type Database, type Runner, violated } from '../db/database.ts';
import { type HostRow, listHosts, retireHost } from '../db/hosts.ts';
import { listPlans, type PlanFigure, type PlanRow, updatePlan } from '../db/plans.ts';
import { applyPlan } from '../db/webhooks.ts';
import type { Keyring } from '../keyring.ts';
import { type MintedKey, mintKey, newId } from './secrets.ts';
import { Vault } from './vault.ts';

/** A mistake of the operator's, told in one sentence. */
export class OperatorMistake extends Error {}

export interface MadeAccount {
  account: { id: string };
  user: { id: string };
  key: { id: string; raw: string };
}

export class Operator {
  readonly #database: Database;
  readonly #date: () => Date;

  constructor(database: Database, date: () => Date = () => new Date()) {
    this.#database = database;
    this.#date = date;
  }

  /** An account with its owner and the owner's first key, which may manage keys. */
  async createAccount(wish: { name: string; plan: string; owner: string }): Promise<MadeAccount> {
    return this.#database.transaction((tx) => makeAccount(tx, wish, mintKey()));
  }

  /**
   * The account of a service that has none yet. `keep` stores the key for the operator before the
   * account is committed: a crash in between leaves a stored key that means nothing and is replaced.
   */
  async createFirstAccount(
    wish: { name: string; plan: string; owner: string },
    keep: (made: MadeAccount) => Promise<void>,
  ): Promise<MadeAccount | undefined> {
    return this.#database.transaction(async (tx) => {
      if (!(await accounts.isEmptyService(tx))) return undefined;
      const made = await makeAccount(tx, wish, mintKey());
      await keep(made);
      return made;
    });
  }

  /** Seals every stored value anew, with a key that is added to the keyring. */
  async rotateKeyring(keyring: Keyring): ReturnType<Vault['rotate']> {
    return new Vault(this.#database, keyring).rotate();
  }

  /** Makes a keyring the service's own in place of one that is lost. */
  async adoptKeyring(keyring: Keyring): ReturnType<Vault['rotate']> {
    const vault = new Vault(this.#database, keyring);
    await vault.adopt();
    return vault.rotate();
  }

  async listAccounts(): Promise<accounts.AccountRow[]> {
    return accounts.listAccounts(this.#database);
  }

  async setAccount(
    id: string,
    change: { plan?: string | undefined; suspended?: boolean | undefined },
  ): Promise<accounts.AccountRow> {
    return this.#onAccount(id, async (tx) => {
      const row = await knowingPlan(change.plan, () =>
        accounts.updateAccount(tx, id, { planId: change.plan, suspended: change.suspended }),
      );
      if (change.plan !== undefined) await applyPlan(tx, { account: id }, this.#date());
      return row ?? unknownAccount(id);
    });
  }

  async addMember(wish: {
    account: string;
    email: string;
    role: Role;
  }): Promise<{ user: { id: string }; role: Role }> {
    return this.#onAccount(wish.account, async (tx) => {
      const user = await accounts.ensureUser(tx, newId('user'), checkedEmail(wish.email));
      try {
        await accounts.insertMember(tx, wish.account, user.id, wish.role);
      } catch (error) {
        if (violated(error) !== 'members_already') throw error;
        throw new OperatorMistake(
          `${wish.email} is a member already; use \`member set\` to change the role.`,
        );
      }
      return { user: { id: user.id }, role: wish.role };
    });
  }

  async setMember(
    account: string,
    email: string,
    change: { role?: Role | undefined; seatSuspended?: boolean | undefined },
  ): Promise<{ user: { id: string } } & accounts.MembershipRow> {
    return this.#onAccount(account, async (tx) => {
      const user = await this.#knownUser(tx, email);
      const row = await accounts.updateMember(tx, account, user.id, change);
      if (row === undefined) throw new OperatorMistake(`${email} is not a member of ${account}.`);
      return { user: { id: user.id }, ...row };
    });
  }

  /** The person's keys stay and answer 403, until they are a member again. */
  async removeMember(account: string, email: string): Promise<{ user: { id: string } }> {
    return this.#onAccount(account, async (tx) => {
      const user = await this.#knownUser(tx, email);
      if (!(await accounts.deleteMember(tx, account, user.id))) {
        throw new OperatorMistake(`${email} is not a member of ${account}.`);
      }
      return { user: { id: user.id } };
    });
  }

  async setUser(
    email: string,
    change: {
      name?: string | undefined;
      verified?: boolean | undefined;
      suspended?: boolean | undefined;
    },
  ): Promise<accounts.UserRow> {
    const row = await accounts.updateUser(this.#database, email, change);
    return row ?? unknownUser(email);
  }

  async createKey(wish: {
    account: string;
    email: string;
    workspace?: string | undefined;
    manageKeys: boolean;
    name?: string | undefined;
  }): Promise<{ id: string; raw: string }> {
    return this.#onAccount(wish.account, async (tx) => {
      const user = await this.#knownUser(tx, wish.email);
      if (!(await accounts.isMember(tx, wish.account, user.id))) {
        throw new OperatorMistake(`${wish.email} is not a member of ${wish.account}.`);
      }
      try {
        return await makeKey(tx, mintKey(), {
          accountId: wish.account,
          userId: user.id,
          workspaceId: wish.workspace ?? null,
          manageKeys: wish.manageKeys,
          name: checkedKeyName(wish.name),
        });
      } catch (error) {
        if (violated(error) !== 'api_keys_workspace') throw error;
        throw new OperatorMistake(
          `The account ${wish.account} has no workspace ${wish.workspace}.`,
        );
      }
    });
  }

  async revokeKey(id: string): Promise<{ id: string }> {
    if (!isId('apiKey', id) || !(await revokeKeyById(this.#database, id))) {
      throw new OperatorMistake(`There is no key ${id}.`);
    }
    return { id };
  }

  async listPlans(): Promise<PlanRow[]> {
    return listPlans(this.#database);
  }

  async setPlan(
    id: string,
    change: { label?: string | undefined } & Partial<Record<PlanFigure, number>>,
  ): Promise<PlanRow> {
    return this.#database.transaction(async (tx) => {
      const row = await updatePlan(tx, id, change);
      if (row === undefined) throw new OperatorMistake(`There is no plan ${id}.`);
      if (change.max_webhooks !== undefined) await applyPlan(tx, { plan: id }, this.#date());
      return row;
    });
  }

  async listHosts(): Promise<HostRow[]> {
    return listHosts(this.#database);
  }

  /** Gives up a host that will not come back: its computers count as deleted. */
  async retireHost(id: string): Promise<{ id: string; computers_deleted: number }> {
    const ended = await this.#database.transaction((tx) => retireHost(tx, id));
    if (ended === undefined) {
      throw new OperatorMistake(`There is no host ${id}; \`host list\` shows them.`);
    }
    return { id, computers_deleted: ended.length };
  }

  /** Changes of one account take turns, with those of its own people through the API too. */
  async #onAccount<Result>(id: string, work: (tx: Runner) => Promise<Result>): Promise<Result> {
    return this.#database.transaction(async (tx) => {
      if (!(await lockAccountRow(tx, id))) unknownAccount(id);
      return work(tx);
    });
  }

  async #knownUser(tx: Runner, email: string): Promise<accounts.UserRow> {
    return (await accounts.findUser(tx, email)) ?? unknownUser(email);
  }
}

async function makeAccount(
  tx: Runner,
  wish: { name: string; plan: string; owner: string },
  minted: MintedKey,
): Promise<MadeAccount> {
  const email = checkedEmail(wish.owner);
  const account = await knowingPlan(wish.plan, () =>
    accounts.insertAccount(tx, { id: newId('account'), name: wish.name, planId: wish.plan }),
  );
  const user = await accounts.ensureUser(tx, newId('user'), email);
  await accounts.insertMember(tx, account.id, user.id, 'owner');
  const key = await makeKey(tx, minted, {
    accountId: account.id,
    userId: user.id,
    workspaceId: null,
    manageKeys: true,
    name: null,
  });
  return { account: { id: account.id }, user: { id: user.id }, key };
}

async function makeKey(
  tx: Runner,
  minted: MintedKey,
  key: {
    accountId: string;
    userId: string;
    workspaceId: string | null;
    manageKeys: boolean;
    name: string | null;
  },
): Promise<{ id: string; raw: string }> {
  const id = newId('apiKey');
  const { hash, prefix, raw } = minted;
  await insertApiKey(tx, { ...key, id, hash, prefix, mintedByKeyId: null });
  return { id, raw };
}

async function knowingPlan<Result>(
  plan: string | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (violated(error) !== 'accounts_plan_id_fkey') throw error;
    throw new OperatorMistake(`There is no plan ${plan}; \`plan list\` shows them.`);
  }
}

function checkedEmail(email: string): string {
  if (email.length > 254 || !/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw new OperatorMistake(`"${email}" is not an e-mail address.`);
  }
  return email;
}

function checkedKeyName(name: string | undefined): string | null {
  if (name === undefined) return null;
  const checked = apiKeyName.safeParse(name);
  if (!checked.success) {
    throw new OperatorMistake(`The key’s name ${checked.error.issues[0]?.message}.`);
  }
  return checked.data;
}

function unknownAccount(id: string): never {
  throw new OperatorMistake(`There is no account ${id}; \`account list\` shows them.`);
}

function unknownUser(email: string): never {
  throw new OperatorMistake(`Nobody has the e-mail address ${email}.`);
}
