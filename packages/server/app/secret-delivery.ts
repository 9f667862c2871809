// Opens the values that a computer is to have, when they are sent and no earlier, and brings to running
// computers what they lack. A value is in no operation, record or log.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostCommand, HostDelivery } from '@cubicle/contract/host/api.ts';
import type { AppliedSecret, BoundSecret, ComputerSecrets } from '../db/computer-secrets.ts';
import { computerById, isBeingChanged, lockComputerById } from '../db/computers.ts';
import type { Database } from '../db/database.ts';
import { aboutSecret } from '../db/sealed-values.ts';
import { sealedSecrets, type SealedSecret, setApplied } from '../db/secret-bindings.ts';
import {
  beginRedelivery,
  endLook,
  endRedelivery,
  type Look,
  lookLater,
  takeLooks,
} from '../db/secret-redeliveries.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host } from '../hosts/host.ts';
import { sameBinding } from './computer-secrets.ts';
import type { Vault } from './vault.ts';

/** Computers that are looked at together. */
const mostLooks = 10;

type Values = HostDelivery['secrets'];

export class SecretDelivery {
  readonly #database: Database;
  readonly #vault: Vault;
  readonly #fleet: Fleet;

  constructor(database: Database, vault: Vault, fleet: Fleet) {
    this.#database = database;
    this.#vault = vault;
    this.#fleet = fleet;
  }

  /** What goes with a command; nothing where some of it cannot be had, and its host then lets nothing run. */
  async beside(computerId: string, command: HostCommand): Promise<HostDelivery | undefined> {
    if (!('delivers' in command) || command.delivers === undefined) return undefined;
    const sealed = await sealedSecrets(this.#database, computerId);
    const secrets = this.#open(sealed);
    if (secrets.length < sealed.length) return undefined;
    return { serial: command.delivers, replaces: true, secrets };
  }

  /** Looks at the computers that may lack something: best effort, and tried again now and then. */
  async redeliver(): Promise<void> {
    const looks = await takeLooks(this.#database, mostLooks);
    const done = await Promise.allSettled(looks.map((look) => this.#look(look)));
    for (const [n, result] of done.entries()) {
      if (result.status === 'rejected') await lookLater(this.#database, looks[n] as Look);
    }
  }

  async #look(look: Look): Promise<void> {
    const { computer_id: id } = look;
    // A start may have taken the value before it was replaced, and not have come to its end.
    if (await isBeingChanged(this.#database, id)) return lookLater(this.#database, look);
    const row = await computerById(this.#database, id);
    // One that does not run gets everything when it does.
    if (!row?.active || row.state !== 'live' || row.secrets === null) {
      return endLook(this.#database, look);
    }
    const host = await this.#fleet.host(row.host_id);
    const told = await host.computer(id);
    if (told?.status !== 'running') return endLook(this.#database, look);
    if (told.secrets === undefined) return lookLater(this.#database, look);
    const missing = missingOf(row.secrets, told.secrets);
    if (missing.wanted.size === 0 && !missing.replaces) return endLook(this.#database, look);
    const brought = await this.#bring(host, id, missing);
    await (brought ? endLook : lookLater)(this.#database, look);
  }

  async #bring(host: Host, id: string, missing: Missing): Promise<boolean> {
    const { replaces, rest, wanted, since } = missing;
    const serial = await this.#database.transaction(async (tx) => {
      const row = await lockComputerById(tx, id);
      // Whatever was delivered meanwhile is newer.
      const same = row?.active && row.secrets !== null && row.secrets.applied_serial === since;
      return same && !(await isBeingChanged(tx, id)) ? beginRedelivery(tx, id) : undefined;
    });
    if (serial === undefined) return false;
    try {
      const sealed = await sealedSecrets(this.#database, id);
      const secrets = this.#open(sealed.filter(({ secret_id }) => wanted.has(secret_id)));
      if (!(await host.deliver(id, { serial, replaces, secrets }))) return false;
      const brought = secrets.map(withoutValue);
      const kept = rest.filter((held) => !brought.some((secret) => sameBinding(held, secret)));
      await this.#database.transaction((tx) =>
        setApplied(tx, id, serial, [...kept, ...brought], brought),
      );
      return true;
    } finally {
      await endRedelivery(this.#database, id, serial);
    }
  }

  /** Those that are there and can be what they are bound as: no variable has a NUL in it. */
  #open(sealed: readonly SealedSecret[]): Values {
    return sealed.flatMap(({ sealed: bytes, ...secret }) => {
      if (bytes === null) return [];
      const value = this.#value(bytes, secret);
      return secret.env !== null && value.includes('\0') ? [] : [{ ...secret, value }];
    });
  }

  #value(sealed: Buffer, { secret_id, revision_id }: AppliedSecret): string {
    try {
      return this.#vault.open(sealed, aboutSecret(secret_id, revision_id)).toString('utf8');
    } catch (cause) {
      throw Object.assign(new Refusal('keyring_unavailable'), { cause });
    }
  }
}

function withoutValue({ secret_id, revision_id, env, file }: AppliedSecret): AppliedSecret {
  return { secret_id, revision_id, env, file };
}

interface Missing {
  /** What the guest has goes: it is not what was brought to it last. */
  readonly replaces: boolean;
  /** What it has otherwise, and by which delivery. */
  readonly rest: readonly AppliedSecret[];
  readonly since: number | null;
  /** Ids of secrets. */
  readonly wanted: ReadonlySet<string>;
}

/** A guest that booted by itself has nothing. Any other lacks what was replaced since: a changed list waits. */
function missingOf(secrets: ComputerSecrets, held: number): Missing {
  const { applied, applied_serial: since, bound } = secrets;
  if (held !== (since ?? 0)) {
    const wanted = new Set(bound.map(({ secret_id }) => secret_id));
    return { replaces: bound.length > 0, rest: [], since, wanted };
  }
  const rest = applied ?? [];
  const isOld = (binding: BoundSecret) =>
    !binding.deleted &&
    rest.some((one) => sameBinding(one, binding) && one.revision_id !== binding.latest);
  const wanted = new Set(bound.filter(isOld).map(({ secret_id }) => secret_id));
  return { replaces: false, rest, since, wanted };
}
