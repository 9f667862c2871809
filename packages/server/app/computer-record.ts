// A computer as callers read it: what was asked for, joined with what its host says.

import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { HostComputer } from '@cubicle/contract/host/api.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';
import type { ComputerRow } from '../db/computers.ts';
import { secretFields } from './computer-secrets.ts';

/** What the control plane's own record tells, without its host. */
function identity(row: ComputerRow): Computer {
  return {
    id: row.id,
    name: row.name,
    os: row.os,
    ...(row.desktop !== null && { desktop: row.desktop }),
    template: row.template,
    cpu: row.cpu,
    ram_mb: row.ram_mb,
    disk_gb: row.disk_gb,
    ...(row.workspace_id !== null && { workspace_id: row.workspace_id }),
    created_at: row.created_at.toISOString(),
  };
}

/** Some answers do not say what is charged to the running pool (wire-computers section 2). */
export function uncharged(computer: Computer): Computer {
  const { running_ram_mb: _, ...record } = computer;
  return record;
}

/** One computer, with its host's word. `building` until the host has it. */
export function recordOf(row: ComputerRow, host: HostComputer | undefined): Computer {
  const status = statusOf(row, host);
  const at = row.suspended_at;
  return {
    ...identity(row),
    status,
    running_ram_mb: row.active ? row.ram_mb : 0,
    resolution: row.resolution,
    ...(row.idle_suspend_min !== null && { idle_suspend_min: row.idle_suspend_min }),
    ...(status === 'suspended' && at !== null && { suspended: { at: at.toISOString() } }),
    ...((status === 'building' || status === 'build-failed') && {
      build: {
        ...(row.build_source !== null && { source: row.build_source }),
        started: row.created_at.toISOString(),
        ...(row.build_failed !== null && { failed: row.build_failed }),
      },
    }),
    ...secretFields(row.secrets, status, host),
  };
}

export function statusOf(row: ComputerRow, host: HostComputer | undefined): ComputerStatus {
  if (row.build_failed !== null) return 'build-failed';
  if (host === undefined) return row.state === 'deleting' ? 'half-removed' : 'building';
  return host.status;
}

export function requireBuilt(status: ComputerStatus): void {
  // Its making is an operation of its own, which comes to an end without the caller's doing.
  if (status === 'building') throw new Refusal('computer_busy');
  if (status === 'build-failed' || status === 'half-removed') {
    throw new Refusal('computer_not_ready', { status });
  }
}

/** A row of a listing: its state, and the host's word where it has one. */
export function listingRow(
  row: ComputerRow,
  host: HostComputer | undefined,
  silent: boolean,
): Computer {
  if (row.state === 'deleted') {
    return {
      ...identity(row),
      state: 'deleted',
      deleted_at: (row.deleted_at ?? row.created_at).toISOString(),
    };
  }
  if (row.state === 'lost') {
    return {
      ...identity(row),
      state: 'lost',
      lost_at: (row.lost_at ?? row.created_at).toISOString(),
    };
  }
  if (silent) return { ...identity(row), state: 'unreachable', unreachable: true };
  return { ...recordOf(row, host), state: row.state === 'deleting' ? 'deleting' : 'live' };
}
