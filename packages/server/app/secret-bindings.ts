// Which secrets are bound to a computer: wire-account section 3. Binding opens no value.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { SecretBindings as Told } from '@cubicle/contract/resources/computer-secrets.ts';
import type { BindingWish } from '@cubicle/contract/secret-bindings.ts';
import type { ComputerSecrets } from '../db/computer-secrets.ts';
import { type ComputerRow, isBeingChanged, lockComputer } from '../db/computers.ts';
import type { Database, Runner } from '../db/database.ts';
import { putBindings, resolveSecrets } from '../db/secret-bindings.ts';
import { type Authority, changeAs } from './authority.ts';
import { requireBuilt, statusOf } from './computer-record.ts';
import { bindingOf } from './computer-secrets.ts';
import type { Computers } from './computers.ts';

export class SecretBindings {
  readonly #database: Database;
  readonly #computers: Computers;

  constructor(database: Database, computers: Computers) {
    this.#database = database;
    this.#computers = computers;
  }

  async get(authority: Authority, id: string): Promise<Told> {
    return toldOf((await this.#computers.row(authority, id)).secrets);
  }

  async put(
    authority: Authority,
    id: string,
    wish: { secrets: readonly BindingWish[]; version?: number | undefined },
  ): Promise<Told> {
    const row = await this.#computers.row(authority, id);
    const status = statusOf(row, await this.#computers.seen(row));
    requireBuilt(status);
    return changeAs(this.#database, authority, 'member', async (tx) => {
      const locked = await lockComputer(tx, authority, id);
      if (locked === undefined) throw new Refusal('computer_unknown');
      const { version = 0, bound = [], delivering = false } = locked.secrets ?? {};
      if (wish.version !== undefined && wish.version !== version) {
        throw new Refusal('secret_bindings_stale');
      }
      if (delivering) throw new Refusal('secrets_delivering');
      if (await isBeingChanged(tx, id)) throw new Refusal('computer_busy');
      const lives = locked.active || status === 'running' || status === 'suspended';
      if (lives && bound.length === 0 && wish.secrets.length > 0) {
        throw new Refusal('secrets_first_binding');
      }
      await bind(tx, locked, wish.secrets);
      return toldOf((await lockComputer(tx, authority, id))?.secrets ?? null);
    });
  }
}

/** Instead of what was bound to the computer, whose row the caller has locked. */
export async function bind(
  tx: Runner,
  computer: ComputerRow,
  list: readonly BindingWish[],
): Promise<void> {
  const latest = await resolveSecrets(
    tx,
    computer,
    list.map(({ secret_id }) => secret_id),
  );
  const held = heldRevisions(computer.secrets);
  const bindings = list.map(({ secret_id, env = null, file = null, revision_id = null }) => {
    const present = latest.get(secret_id);
    if (present === undefined) throw new Refusal('secret_binding_unresolved');
    const known = held.get(secret_id);
    if (revision_id !== null && revision_id !== known) throw new Refusal('secret_binding_stale');
    return { secret_id, env, file, revision_id: known ?? present };
  });
  await putBindings(tx, computer.id, bindings);
}

/** What the computer holds; of what was only bound, the revision that was told. */
function heldRevisions(secrets: ComputerSecrets | null): Map<string, string> {
  const told = [...(secrets?.bound ?? []), ...(secrets?.applied ?? [])];
  return new Map(told.map(({ secret_id, revision_id }) => [secret_id, revision_id]));
}

function toldOf(secrets: ComputerSecrets | null): Told {
  return { secrets: (secrets?.bound ?? []).map(bindingOf), version: secrets?.version ?? 0 };
}
