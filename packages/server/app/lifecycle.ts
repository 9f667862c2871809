// A change of a computer, in three steps: recorded, carried out by its host, settled. Any process may die
// between two of them; another one takes the operation up, repeats the command and settles it.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostCommand, HostDelivery, HostOutcome } from '@cubicle/contract/host/api.ts';
import { type ComputerRow, hostOfComputer, setComputerUnheard } from '../db/computers.ts';
import { type Database, type Runner, violated } from '../db/database.ts';
import { releaseKey, releaseUnspentKey, spendKey, storeAnswer } from '../db/idempotency.ts';
import {
  forgetOperation,
  insertOperation,
  leasedOperations,
  lockOperation,
  type OperationRow,
  setOperation,
} from '../db/operations.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { HostAway } from '../hosts/host.ts';
import { type Authority, changeAs } from './authority.ts';
import { type Keyed, takeKey } from './idempotency.ts';
import { Leases } from './leases.ts';
import type { SecretDelivery } from './secret-delivery.ts';
import { newId } from './secrets.ts';
import { Failed, type Settled, settle, undo } from './settle.ts';

/** How long a host may take. */
const answerMs = 90_000;
/** A keyed call whose outcome is not heard within this is lost (wire-computers section 9). */
const lostAfterMs = 3_600_000;

export interface Prepared {
  readonly computer: ComputerRow;
  readonly command: CommandWish;
}

/** A host's command before its operation has an id. */
export type CommandWish = HostCommand extends infer Command
  ? Command extends HostCommand
    ? Omit<Command, 'operation'>
    : never
  : never;

export class Lifecycle {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #secrets: SecretDelivery;
  /** Operations that this process is carrying out. */
  readonly #leases: Leases<OperationRow>;

  constructor(database: Database, fleet: Fleet, secrets: SecretDelivery) {
    this.#database = database;
    this.#fleet = fleet;
    this.#secrets = secrets;
    this.#leases = new Leases(database, leasedOperations);
  }

  async renew(): Promise<void> {
    await this.#leases.renew();
  }

  /**
   * `prepare` checks the rules and takes the room, in the transaction that records the operation.
   * What it throws is a refusal that records nothing.
   */
  async change(
    authority: Authority,
    keyed: Keyed | undefined,
    prepare: (tx: Runner) => Promise<Prepared>,
  ): Promise<Settled> {
    const operationId = newId('operation');
    const { computer, command } = await this.#record(authority, keyed, operationId, prepare);
    const told: HostCommand = { ...command, operation: operationId };
    return this.#holding(operationId, async () => {
      let outcome: HostOutcome;
      try {
        const host = await this.#fleet.host(computer.host_id);
        const delivery = await this.#secrets.beside(computer.id, told);
        outcome = await host.command(computer.id, told, answerMs, delivery);
      } catch (error) {
        return this.#unheard(operationId, computer, told, keyed, error);
      }
      return this.#settle(operationId, outcome, 'asked');
    });
  }

  async #holding<Result>(operationId: string, work: () => Promise<Result>): Promise<Result> {
    this.#leases.hold(operationId);
    try {
      return await work();
    } finally {
      this.#leases.letGo(operationId);
    }
  }

  async #record(
    authority: Authority,
    keyed: Keyed | undefined,
    operationId: string,
    prepare: (tx: Runner) => Promise<Prepared>,
  ): Promise<Prepared> {
    try {
      return await changeAs(this.#database, authority, 'member', async (tx) => {
        if (keyed !== undefined) await takeKey(tx, authority, keyed, operationId);
        const prepared = await prepare(tx);
        await insertOperation(tx, {
          id: operationId,
          accountId: authority.accountId,
          computerId: prepared.computer.id,
          kind: prepared.command.kind,
          idempotencyKey: keyed?.key ?? null,
          command: { ...prepared.command, operation: operationId },
        });
        return prepared;
      });
    } catch (error) {
      if (violated(error) === 'operations_one_at_a_time') throw new Refusal('computer_busy');
      throw error;
    }
  }

  /**
   * `asked`: by the process that was called, whose caller hears a refusal now, as if nothing had been.
   * `taken up`: its caller may know the operation, so a refusal is how that ended.
   */
  async #settle(
    operationId: string,
    outcome: HostOutcome,
    by: 'asked' | 'taken up',
  ): Promise<Settled> {
    const settled = await this.#database.transaction(async (tx) => {
      const operation = await lockOperation(tx, operationId);
      // Another process took it up and was faster; what it settled stands.
      if (operation === undefined)
        throw new Refusal('host_outcome_unknown', {}, { operation_id: operationId });
      const result = await settle(tx, operation, outcome);
      if (result instanceof Failed) await spendKey(tx, operationId);
      else if (!(result instanceof Refusal)) {
        await storeAnswer(tx, operationId, result.status, result.body);
      } else if (by === 'asked') {
        await forgetOperation(tx, operationId);
        await releaseKey(tx, operationId);
      } else {
        const { error: code, message } = result;
        await setOperation(tx, operationId, 'failed', { code, message });
        await releaseUnspentKey(tx, operationId);
      }
      return result;
    });
    if (settled instanceof Refusal) throw settled;
    if (settled instanceof Failed) throw settled.refusal;
    return settled;
  }

  /** The host was never asked: as if the call had not been made. Or it was, and nothing was heard. */
  async #unheard(
    operationId: string,
    computer: ComputerRow,
    command: HostCommand,
    keyed: Keyed | undefined,
    error: unknown,
  ): Promise<never> {
    if (error instanceof HostAway || error instanceof Refusal) {
      await this.#database.transaction(async (tx) => {
        await undo(tx, computer, command);
        await forgetOperation(tx, operationId);
        await releaseKey(tx, operationId);
      });
      throw error instanceof Refusal ? error : new Refusal('host_unreachable');
    }
    // A power change without a key is told as lost at once; the rest is found out by taking it up.
    const power = ['start', 'stop', 'suspend', 'restart'].includes(command.kind);
    await this.#database.transaction(async (tx) => {
      await spendKey(tx, operationId);
      if (command.kind === 'create' || command.kind === 'clone') {
        await setComputerUnheard(tx, computer.id, true);
      }
      if (power && keyed === undefined) {
        await setOperation(tx, operationId, 'failed', lost);
      }
    });
    throw new Refusal('host_outcome_unknown', {}, { operation_id: operationId });
  }

  /** Takes up operations whose holder is gone: repeats their command, which hosts allow, and settles them. */
  async takeUp(): Promise<void> {
    await Promise.all((await this.#leases.takeUp()).map((operation) => this.resume(operation)));
  }

  async resume(operation: OperationRow, timeoutMs = answerMs): Promise<void> {
    await this.#holding(operation.id, () => this.#resume(operation, timeoutMs));
  }

  async #resume(operation: OperationRow, timeoutMs: number): Promise<void> {
    try {
      const command = operation.command as HostCommand;
      const host = await this.#fleet.host(await this.#hostOf(operation));
      const delivery = await this.#delivery(operation.computer_id, command);
      const outcome = await host.command(operation.computer_id, command, timeoutMs, delivery);
      await this.#settle(operation.id, outcome, 'taken up');
    } catch (error) {
      // A refusal settles it too. A silent host is asked again, for an hour.
      if (error instanceof Refusal) return;
      if (Date.now() - operation.created_at.getTime() > lostAfterMs) {
        await this.#database.transaction(async (tx) => {
          await setOperation(tx, operation.id, 'failed', lost);
          // From here on the host's word decides whether it is there.
          await setComputerUnheard(tx, operation.computer_id, false);
        });
      }
    }
  }

  /** A keyring that is away leaves the operation to be taken up again, as a silent host does. */
  async #delivery(computerId: string, command: HostCommand): Promise<HostDelivery | undefined> {
    try {
      return await this.#secrets.beside(computerId, command);
    } catch (cause) {
      throw new Error('its secrets cannot be opened', { cause });
    }
  }

  async #hostOf(operation: OperationRow): Promise<string> {
    const hostId = await hostOfComputer(this.#database, operation.computer_id);
    if (hostId === undefined)
      throw new Error(`the computer ${operation.computer_id} has no record`);
    return hostId;
  }
}

const lost = { code: 'lost', message: 'It was never heard how the call ended.' };
