// What a computer's record says of its bound secrets: wire-account section 3, wire-computers section 2.

import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import type { HostComputer } from '@cubicle/contract/host/api.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';
import type { SecretBinding } from '@cubicle/contract/secret-bindings.ts';
import type { AppliedSecret, BoundSecret, ComputerSecrets } from '../db/computer-secrets.ts';

/** The same secret under the same name, whatever its revision. */
export function sameBinding(one: AppliedSecret, other: AppliedSecret): boolean {
  return one.secret_id === other.secret_id && one.env === other.env && one.file === other.file;
}

/** Whether what is bound is what the computer was given, whatever the revisions. */
export function isListApplied({ bound, applied }: ComputerSecrets): boolean {
  const held = applied ?? [];
  return (
    bound.length === held.length && bound.every((one) => held.some((has) => sameBinding(one, has)))
  );
}

export function bindingOf({ secret_id, revision_id, env, file }: AppliedSecret): SecretBinding {
  return {
    secret_id,
    revision_id,
    ...(env !== null && { env }),
    ...(file !== null && { file }),
  };
}

/** The whole group is absent where nothing is bound; but for one that still holds what was bound before. */
export function secretFields(
  secrets: ComputerSecrets | null,
  status: ComputerStatus,
  host: HostComputer | undefined,
): Partial<Computer> {
  if (secrets === null) return {};
  const { bound, applied, error, delivering } = secrets;
  if (bound.length === 0) return stillHolds(secrets, status, host) ? { secrets_pending: true } : {};
  return {
    secrets: bound.map(bindingOf),
    secrets_generation: secrets.generation,
    ...(applied !== null && {
      secrets_applied: {
        generation: secrets.applied_generation ?? 0,
        applied_at: new Date(secrets.applied_at ?? 0).toISOString(),
        revisions: Object.fromEntries(applied.map((one) => [one.secret_id, one.revision_id])),
      },
    }),
    // Cleared when the next delivering start begins.
    ...(error !== null && !delivering && { secrets_error: error }),
    secrets_pending: isPending(secrets, status, host),
    secrets_delivering: delivering,
  };
}

function stillHolds(
  { applied }: ComputerSecrets,
  status: ComputerStatus,
  host: HostComputer | undefined,
): boolean {
  const may = status === 'suspended' || (status === 'running' && (host?.secrets ?? 0) > 0);
  return may && (applied ?? []).length > 0;
}

/** Null where nobody can say what a running computer holds. */
function isPending(
  secrets: ComputerSecrets,
  status: ComputerStatus,
  host: HostComputer | undefined,
): boolean | null {
  const held = new Map(secrets.applied?.map((one) => [one.secret_id, one.revision_id]));
  const isOld = ({ secret_id, latest }: BoundSecret) => held.get(secret_id) !== latest;
  if (!isListApplied(secrets) || secrets.bound.some(isOld)) return true;
  if (status !== 'running') return false;
  if (host?.secrets === undefined) return null;
  return host.secrets !== (secrets.applied_serial ?? 0);
}
