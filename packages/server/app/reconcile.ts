// What hosts see brought into the records, and the records brought to the hosts: a computer that stopped by
// itself gives its room back, one that nobody uses is suspended, one that its host no longer has is lost,
// and what a host still has of one that is gone is removed.

import type { HostCommand, HostComputer } from '@cubicle/contract/host/api.ts';
import { limits } from '@cubicle/contract/limits.ts';
import {
  type ComputerRow,
  endedComputers,
  observeActive,
  setComputerState,
  settledComputersOn,
} from '../db/computers.ts';
import type { Database } from '../db/database.ts';
import { lookUnlessGivenUp } from '../db/secret-redeliveries.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Host } from '../hosts/host.ts';
import { secretsAgainstSuspend } from './secret-starts.ts';
import { Misses } from './misses.ts';
import { newId } from './secrets.ts';

/** For commands that nobody waits for; asked again in the next round. */
const answerMs = 60_000;

export class Reconciler {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #misses = new Misses();

  constructor(database: Database, fleet: Fleet) {
    this.#database = database;
    this.#fleet = fleet;
  }

  async run(): Promise<void> {
    await Promise.all((await this.#fleet.hosts()).map((host) => this.#host(host)));
  }

  async #host(host: Host): Promise<void> {
    // Read before the host is asked: what changes in between has an operation or a newer start.
    const rows = await settledComputersOn(this.#database, host.id);
    const report = await host.report().catch(() => undefined);
    if (report === undefined) return;
    const seen = new Map<string, HostComputer>(report.computers.map((each) => [each.id, each]));
    for (const row of rows) {
      const computer = seen.get(row.id);
      if (computer === undefined) await this.#missing(row);
      else await this.#present(host, row, computer);
      seen.delete(row.id);
    }
    for (const id of await endedComputers(this.#database, [...seen.keys()])) {
      await tell(host, id, { kind: 'delete', operation: newId('operation') });
    }
  }

  async #present(host: Host, row: ComputerRow, computer: HostComputer): Promise<void> {
    this.#misses.seen(row.id);
    let { status } = computer;
    if (status === 'running' && lacksSecrets(row, computer)) {
      await lookUnlessGivenUp(this.#database, row.id);
    }
    if (status === 'running' && isIdle(row, computer) && maySuspend(row)) {
      const command = { kind: 'suspend', operation: newId('operation') } as const;
      if (await tell(host, row.id, { ...command, idle_s: idleSeconds(row) })) status = 'suspended';
    }
    const active = status === 'running';
    if (active !== row.active) {
      await observeActive(this.#database, row, active, status === 'suspended');
    }
  }

  async #missing({ id, build_failed, state }: ComputerRow): Promise<void> {
    // A clone that failed may have left nothing on its host.
    if (build_failed !== null || state !== 'live') return;
    if (this.#misses.missed(id)) await setComputerState(this.#database, id, 'lost');
  }
}

function idleSeconds({ idle_suspend_min: minutes }: ComputerRow): number {
  return (minutes ?? limits.idleDefaultMin) * 60;
}

function isIdle(row: ComputerRow, { idle_s: idle }: HostComputer): boolean {
  return row.idle_suspend_min !== 0 && idle !== undefined && idle >= idleSeconds(row);
}

/** What a caller is refused is not done without one either. */
function maySuspend(row: ComputerRow): boolean {
  return secretsAgainstSuspend(row) === undefined;
}

/** It booted by itself, or an operation that delivered was never heard of again. */
function lacksSecrets({ secrets }: ComputerRow, { secrets: held }: HostComputer): boolean {
  if (secrets === null || held === undefined || secrets.bound.length === 0) return false;
  return held !== (secrets.applied_serial ?? 0);
}

/** Whether it was done. */
async function tell(host: Host, id: string, command: HostCommand): Promise<boolean> {
  try {
    return (await host.command(id, command, answerMs)).outcome === 'done';
  } catch {
    return false;
  }
}
