// What an account has on the fleet, as the rules about quota and emptiness ask for it.

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

/** A service without hosts: complete, and empty. */
export const noFleet: Inventory = {
  observe: async () => ({ computers: [], snapshotBytes: 0 }),
  computersIn: async () => 0,
};
