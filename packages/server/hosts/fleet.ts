// The fleet as the control plane sees it: which hosts there are, what they say, and where room is.

import type { HostComputer } from '@cubicle/contract/host/api.ts';
import { usedOf } from '../db/computers.ts';
import type { Database, Runner } from '../db/database.ts';
import { type HostRow, listHosts, lockHost, registerHost } from '../db/hosts.ts';
import { Host } from './host.ts';

/** What hosts said of their computers, and which hosts said nothing. */
export interface FleetView {
  readonly computers: ReadonlyMap<string, HostComputer>;
  readonly silent: ReadonlySet<string>;
}

export class Fleet {
  readonly #database: Database;
  readonly #tokenOf: (host: HostRow) => string;
  readonly #hosts = new Map<string, Host>();

  constructor(database: Database, tokenOf: (host: HostRow) => string) {
    this.#database = database;
    this.#tokenOf = tokenOf;
  }

  async register(host: HostRow): Promise<void> {
    await registerHost(this.#database, host);
    this.#hosts.delete(host.id);
  }

  async hosts(): Promise<Host[]> {
    return (await listHosts(this.#database)).map((row) => this.#hostOf(row));
  }

  async host(id: string): Promise<Host> {
    const known = this.#hosts.get(id);
    if (known !== undefined) return known;
    const row = (await listHosts(this.#database)).find((host) => host.id === id);
    if (row === undefined) throw new Error(`the host ${id} is not registered`);
    return this.#hostOf(row);
  }

  #hostOf(row: HostRow): Host {
    let host = this.#hosts.get(row.id);
    if (host === undefined) {
      const token = () => this.#tokenOf(row);
      host = new Host({ id: row.id, address: row.address, token });
      this.#hosts.set(row.id, host);
    }
    return host;
  }

  /** What every host says, asked at once; undefined of one that says nothing. */
  async asked<Answer>(
    ask: (host: Host) => Promise<Answer>,
    ids?: ReadonlySet<string>,
  ): Promise<{ host: Host; answer: Answer | undefined }[]> {
    const hosts = (await this.hosts()).filter(({ id }) => ids === undefined || ids.has(id));
    return Promise.all(
      hosts.map(async (host) => ({ host, answer: await ask(host).catch(() => undefined) })),
    );
  }

  /** Asks the named hosts, or all, at once. */
  async view(ids?: ReadonlySet<string>): Promise<FleetView> {
    const computers = new Map<string, HostComputer>();
    const silent = new Set<string>();
    for (const { host, answer } of await this.asked((one) => one.report(), ids)) {
      if (answer === undefined) silent.add(host.id);
      for (const computer of answer?.computers ?? []) computers.set(computer.id, computer);
    }
    return { computers, silent };
  }

  /** How many hosts do not answer. */
  async silentHosts(): Promise<number> {
    return (await this.view()).silent.size;
  }

  /**
   * A host with room for this much more memory and disk, the emptiest first. Their rows stay locked until
   * the transaction ends, so that two placements do not both take the last room.
   */
  async place(tx: Runner, need: { ramMb: number; diskGb: number }): Promise<string | undefined> {
    const rooms = [];
    for (const row of await listHosts(tx)) {
      await lockHost(tx, row.id);
      const used = await usedOf(tx, row.id);
      const [ramMb, diskGb] = [row.ram_mb - used.ram_mb, row.disk_gb - used.disk_gb];
      if (ramMb >= need.ramMb && diskGb >= need.diskGb) rooms.push({ id: row.id, ramMb });
    }
    return rooms.toSorted((a, b) => b.ramMb - a.ramMb)[0]?.id;
  }

  /** Whether a host could ever run a computer of so much memory, and has this much more disk now. */
  async suits(tx: Runner, hostId: string, ramMb: number, moreDiskGb: number): Promise<boolean> {
    const row = (await listHosts(tx)).find((host) => host.id === hostId);
    return row !== undefined && ramMb <= row.ram_mb && this.fits(tx, hostId, 0, moreDiskGb);
  }

  /** Whether a host takes this much more memory and disk now. */
  async fits(tx: Runner, hostId: string, moreRamMb: number, moreDiskGb: number): Promise<boolean> {
    const row = (await listHosts(tx)).find((host) => host.id === hostId);
    if (row === undefined) return false;
    await lockHost(tx, hostId);
    const used = await usedOf(tx, hostId);
    return used.ram_mb + moreRamMb <= row.ram_mb && used.disk_gb + moreDiskGb <= row.disk_gb;
  }
}
