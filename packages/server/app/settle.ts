// What an operation's outcome means for the records, and what its caller is answered. The same for the
// process that made the call and for one that took the operation up.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostCommand, HostOutcome } from '@cubicle/contract/host/api.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';
import {
  changeComputer,
  type ComputerRow,
  lockComputerById,
  rotateCredentials,
  setBuildFailed,
  setComputerActive,
  setComputerState,
  setComputerUnheard,
  voidComputer,
} from '../db/computers.ts';
import type { Runner } from '../db/database.ts';
import { type OperationRow, setOperation } from '../db/operations.ts';
import { takeBackDelivery } from '../db/secret-bindings.ts';
import { imagePreparing } from './template-choice.ts';
import { recordOf, uncharged } from './computer-record.ts';
import { settleSecrets } from './secret-starts.ts';

export interface Settled {
  readonly status: number;
  readonly body: unknown;
  /** The computer as it stands, where the answer is its record. */
  readonly computer?: ComputerRow;
}

/** It was begun and failed: its operation stays, and its key is spent (wire-computers section 10). */
export class Failed {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    this.refusal = refusal;
  }
}

/** Settles in the records; a refusal is the outcome of a call that changed nothing. */
export async function settle(
  tx: Runner,
  operation: OperationRow,
  outcome: HostOutcome,
): Promise<Settled | Refusal | Failed> {
  const command = operation.command as HostCommand;
  const row = await lockComputerById(tx, operation.computer_id);
  if (row === undefined) throw new Error(`the computer ${operation.computer_id} has no record`);
  if (row.unheard) await setComputerUnheard(tx, row.id, false);
  if (outcome.outcome === 'refused') {
    const refusal = refusalOf(outcome, row);
    if (operation.state !== 'running') {
      await undo(tx, row, command);
      return refusal;
    }
    // A clone whose caller was told that it is under way, and whose copy had to begin anew.
    if (outcome.why !== 'busy') {
      const failed = { outcome: 'failed', message: refusal.message } as const;
      return settleFailed(tx, operation, command, row, failed);
    }
  }
  if (outcome.outcome === 'copying' || outcome.outcome === 'refused') {
    await setOperation(tx, operation.id, 'running');
    return {
      status: 201,
      body: withOperation(uncharged(recordOf(row, undefined)), operation.id),
      computer: row,
    };
  }
  await settleSecrets(tx, row, command, outcome);
  if (outcome.outcome === 'done') return settleDone(tx, operation, command, row, outcome.status);
  return settleFailed(tx, operation, command, row, outcome);
}

async function settleDone(
  tx: Runner,
  operation: OperationRow,
  command: HostCommand,
  row: ComputerRow,
  status: NonNullable<Computer['status']>,
): Promise<Settled> {
  await setOperation(tx, operation.id, 'succeeded');
  if (command.kind === 'delete') await setComputerState(tx, row.id, 'deleted');
  else await setComputerActive(tx, row.id, status === 'running', status === 'suspended');
  if (command.kind === 'restart') await rotateCredentials(tx, row.id);
  if (command.kind === 'resize') await changeComputer(tx, row.id, command.shape);
  if (command.kind === 'create' || command.kind === 'clone' || command.kind === 'resize') {
    const now = (await lockComputerById(tx, row.id)) ?? row;
    const secrets = now.secrets?.applied_serial ?? 0;
    const record = recordOf(now, { id: row.id, status, ready: false, secrets });
    const told = command.kind === 'clone' ? uncharged(record) : record;
    const body = withOperation(told, operation.id);
    return { status: command.kind === 'resize' ? 200 : 201, body, computer: now };
  }
  return { status: 200, body: { ok: true, operation_id: operation.id } };
}

async function settleFailed(
  tx: Runner,
  operation: OperationRow,
  command: HostCommand,
  row: ComputerRow,
  outcome: Extract<HostOutcome, { message: string }>,
): Promise<Settled | Refusal | Failed> {
  const { message } = outcome;
  const notStarted = outcome.outcome === 'start_failed' || outcome.outcome === 'undelivered';
  if (command.kind === 'create' && notStarted) {
    await setOperation(tx, operation.id, 'failed', { code: 'start_failed', message });
    await setComputerActive(tx, row.id, false);
    const now = (await lockComputerById(tx, row.id)) ?? row;
    const stopped = recordOf(now, { id: row.id, status: 'stopped', ready: false });
    return {
      status: 201,
      body: { computer: uncharged(stopped), start_error: message, operation_id: operation.id },
    };
  }
  if (command.kind === 'clone') {
    await setOperation(tx, operation.id, 'failed', { code: 'build_failed', message });
    await setBuildFailed(tx, row.id, message);
    const failed = recordOf({ ...row, build_failed: message }, undefined);
    return { status: 201, body: withOperation(uncharged(failed), operation.id) };
  }
  if (command.kind === 'create') {
    await undo(tx, row, command);
    return new Refusal('host_failed');
  }
  if (command.kind === 'start' || command.kind === 'restart') {
    await setOperation(tx, operation.id, 'failed', { code: 'start_failed', message });
    await setComputerActive(tx, row.id, false);
  } else {
    await setOperation(tx, operation.id, 'failed', { code: 'host_failed', message });
  }
  const name = outcome.outcome === 'undelivered' ? 'secrets_undelivered' : 'host_failed';
  return new Failed(new Refusal(name, {}, { operation_id: operation.id }));
}

/** Takes back what recording the operation took: nothing was done. */
export async function undo(tx: Runner, row: ComputerRow, command: HostCommand): Promise<void> {
  if ('delivers' in command && command.delivers !== undefined) await takeBackDelivery(tx, row.id);
  switch (command.kind) {
    case 'create':
    case 'clone':
      return voidComputer(tx, row.id);
    case 'start':
    case 'restart':
      return setComputerActive(tx, row.id, row.active && command.kind === 'restart');
    case 'delete':
      return setComputerState(tx, row.id, 'live');
    default:
  }
}

const refusalNames = {
  no_room: 'host_no_room',
  not_running: 'computer_not_running',
  running: 'computer_running',
  suspended: 'computer_suspended',
  busy: 'computer_busy',
  absent: 'host_failed',
  no_image: 'template_image_absent',
} as const;

function refusalOf(
  { why, preparation }: Extract<HostOutcome, { outcome: 'refused' }>,
  row: ComputerRow,
): Refusal {
  if (why !== 'image_preparing') return new Refusal(refusalNames[why]);
  return imagePreparing(row.account_id, row.template, preparation);
}

function withOperation(record: Computer, operationId: string): Computer {
  return { ...record, operation_id: operationId };
}
