// What bound secrets mean for the changes of a computer: which of them deliver, which are refused, and what
// the records say afterwards.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import type { HostCommand, HostOutcome } from '@cubicle/contract/host/api.ts';
import type { ComputerRow } from '../db/computers.ts';
import type { Runner } from '../db/database.ts';
import { beginDelivery, clearApplied, forgetBindings, setApplied } from '../db/secret-bindings.ts';
import { lookSoon } from '../db/secret-redeliveries.ts';
import { isListApplied } from './computer-secrets.ts';

interface Delivers {
  readonly delivers?: number;
}

/** For a start: a boot delivers, and nothing goes on without a secret that was deleted. */
export async function secretsForStart(
  tx: Runner,
  { id, secrets }: ComputerRow,
  status: ComputerStatus,
): Promise<Delivers> {
  if (secrets === null || status === 'running') return {};
  if (secrets.bound.some(({ deleted }) => deleted)) throw new Refusal('secret_bound_gone');
  if (status === 'suspended') return {};
  if (secrets.bound.length > 0) return { delivers: await beginDelivery(tx, id) };
  await clearApplied(tx, id);
  return {};
}

/** For a restart: one that cannot deliver stops the computer, which is its outcome and no refusal. */
export async function secretsForRestart(
  tx: Runner,
  { id, secrets }: ComputerRow,
  status: ComputerStatus,
): Promise<Delivers> {
  if (secrets === null) return {};
  if (secrets.delivering) throw new Refusal('secrets_delivering');
  if (secrets.bound.length === 0) return {};
  if (status === 'stopped') throw new Refusal('secrets_need_start');
  return { delivers: await beginDelivery(tx, id) };
}

/** Why a running computer is not suspended now. */
export function secretsAgainstSuspend({ secrets }: ComputerRow): Refusal | undefined {
  if (secrets === null) return undefined;
  if (secrets.delivering) return new Refusal('secrets_delivering');
  return isListApplied(secrets) ? undefined : new Refusal('secrets_changed');
}

/** After a change that was carried out. */
export async function settleSecrets(
  tx: Runner,
  { id, secrets }: ComputerRow,
  command: HostCommand,
  outcome: HostOutcome,
): Promise<void> {
  if (secrets === null) return;
  if (outcome.outcome === 'undelivered') return clearApplied(tx, id, outcome.message);
  if (outcome.outcome !== 'done') return;
  if (command.kind === 'delete') return forgetBindings(tx, id);
  if ('delivers' in command && command.delivers !== undefined) {
    return setApplied(tx, id, command.delivers, outcome.delivered ?? []);
  }
  // What was replaced while it was suspended.
  if (command.kind === 'start') return lookSoon(tx, id);
  if (command.kind === 'restart') return clearApplied(tx, id);
}
