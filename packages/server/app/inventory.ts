// What an account has on the fleet, as the rules about quota and emptiness ask for it.

import { countInWorkspace, shapesOfAccount } from '../db/computers.ts';
import type { Database } from '../db/database.ts';

/** One computer as quota counts it. */
export interface ComputerFootprint {
  readonly vcpu: number;
  readonly ramMb: number;
  readonly diskGb: number;
  /** Running, or admitted to start. */
  readonly active: boolean;
}

export interface Observation {
  /** Undefined when part of the fleet did not answer. */
  readonly computers: readonly ComputerFootprint[] | undefined;
  /** Indexed stored bytes of every physical copy; undefined when part of the fleet did not answer. */
  readonly snapshotBytes: number | undefined;
}

export interface Inventory {
  observe(accountId: string): Promise<Observation>;
  /** Computers in a workspace or moving into it; undefined when part of the fleet did not answer. */
  computersIn(accountId: string, workspaceId: string): Promise<number | undefined>;
}

/** The records are complete whatever hosts answer: quota counts what was asked for and admitted. */
export function recordedInventory(database: Database): Inventory {
  return {
    observe: async (accountId) => {
      const rows = await shapesOfAccount(database, accountId);
      return {
        computers: rows.map(({ cpu, ram_mb, disk_gb, active }) => ({
          vcpu: cpu,
          ramMb: ram_mb,
          diskGb: disk_gb,
          active,
        })),
        snapshotBytes: 0,
      };
    },
    computersIn: (accountId, workspaceId) => countInWorkspace(database, accountId, workspaceId),
  };
}
