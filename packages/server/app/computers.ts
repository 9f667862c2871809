// Reading computers, and the changes that need no host: wire-computers sections 2, 3 and 6.

import { Refusal } from '@cubicle/contract/errors.ts';
import type { ListingState } from '@cubicle/contract/computer-fields.ts';
import type { HostComputer } from '@cubicle/contract/host/api.ts';
import { isId } from '@cubicle/contract/ids.ts';
import type { Computer } from '@cubicle/contract/resources/computers.ts';
import * as store from '../db/computers.ts';
import type { Database, Runner } from '../db/database.ts';
import { storeAnswerFor } from '../db/idempotency.ts';
import { seesWorkspace } from '../db/workspaces.ts';
import type { Fleet } from '../hosts/fleet.ts';
import { type Authority, changeAs } from './authority.ts';
import { listingRow, recordOf, statusOf, uncharged } from './computer-record.ts';
import type { Credentials } from './credentials.ts';
import { type Keyed, takeKey } from './idempotency.ts';
import { admitNeverIdle } from './quota.ts';

export interface ListWish {
  readonly allowPartial: boolean;
  readonly state: ListingState | undefined;
  readonly workspaceId: string | undefined;
}

export interface Listing {
  readonly computers: Computer[];
  /** How many hosts did not answer; undefined when all did. */
  readonly incomplete: number | undefined;
}

const present = ['live', 'deleting'];

export class Computers {
  readonly #database: Database;
  readonly #fleet: Fleet;
  readonly #credentials: Credentials;

  constructor(database: Database, fleet: Fleet, credentials: Credentials) {
    this.#database = database;
    this.#fleet = fleet;
    this.#credentials = credentials;
  }

  async list(authority: Authority, wish: ListWish): Promise<Listing> {
    const workspace = await this.#workspaceWished(authority, wish.workspaceId);
    const { state } = wish;
    if (state === 'deleted' || state === 'lost') {
      const ended = await store.listComputers(this.#database, authority, [state], workspace);
      return {
        computers: ended.map((row) => listingRow(row, undefined, false)),
        incomplete: undefined,
      };
    }
    const rows = await store.listComputers(this.#database, authority, present, workspace);
    const view = await this.#fleet.view(new Set(rows.map((row) => row.host_id)));
    if (view.silent.size > 0 && !wish.allowPartial) throw new Refusal('host_unreachable');
    const computers = rows
      .map((row) => listingRow(row, view.computers.get(row.id), view.silent.has(row.host_id)))
      .filter((row) => state === undefined || row.state === state);
    return { computers, incomplete: view.silent.size > 0 ? view.silent.size : undefined };
  }

  async get(authority: Authority, id: string): Promise<Computer> {
    const row = await this.row(authority, id);
    return this.withSurface(authority, row, await this.seen(row));
  }

  async row(authority: Authority, id: string): Promise<store.ComputerRow> {
    const row = isId('computer', id)
      ? await store.findComputer(this.#database, authority, id)
      : undefined;
    if (row === undefined) throw new Refusal('computer_unknown');
    return row;
  }

  /** What the host says of it now. */
  async seen(row: store.ComputerRow): Promise<HostComputer | undefined> {
    try {
      return await (await this.#fleet.host(row.host_id)).computer(row.id);
    } catch (cause) {
      const refusal = new Refusal('host_unreachable');
      refusal.cause = cause;
      throw refusal;
    }
  }

  /** The record; with the addresses of its desktop while it runs. */
  withSurface(
    authority: Authority,
    row: store.ComputerRow,
    host: HostComputer | undefined,
  ): Computer {
    return { ...recordOf(row, host), ...this.#surface(authority, row, host) };
  }

  #surface(
    authority: Authority,
    row: store.ComputerRow,
    host: HostComputer | undefined,
  ): Partial<Computer> {
    const running = statusOf(row, host) === 'running';
    return running ? this.#credentials.surface(row, authority) : {};
  }

  async rename(authority: Authority, id: string, name: string, keyed?: Keyed): Promise<Computer> {
    return this.#settings(authority, id, keyed, (tx) => store.changeComputer(tx, id, { name }));
  }

  async setIdle(
    authority: Authority,
    id: string,
    minutes: number | null,
    keyed?: Keyed,
  ): Promise<Computer> {
    return this.#settings(authority, id, keyed, async (tx) => {
      if (minutes === 0) await admitNeverIdle(tx, authority.accountId, id);
      return store.setComputerIdle(tx, id, minutes);
    });
  }

  /** There is none to remove, and no host that takes one. */
  async setProxy(
    authority: Authority,
    id: string,
    proxy: object | null,
    keyed?: Keyed,
  ): Promise<Computer> {
    return this.#settings(authority, id, keyed, async (_tx, row) => {
      if (proxy !== null) throw new Refusal('proxy_unsupported');
      return row;
    });
  }

  /** What needs no host records no operation, and is done in the transaction that takes the key. */
  async #settings(
    authority: Authority,
    id: string,
    keyed: Keyed | undefined,
    change: (tx: Runner, row: store.ComputerRow) => Promise<store.ComputerRow>,
  ): Promise<Computer> {
    const host = await this.seen(await this.row(authority, id));
    const row = await changeAs(this.#database, authority, 'member', async (tx) => {
      if (keyed !== undefined) await takeKey(tx, authority, keyed, null);
      const locked = await store.lockComputer(tx, authority, id);
      if (locked === undefined) throw new Refusal('computer_unknown');
      const changed = await change(tx, locked);
      if (keyed !== undefined) {
        await storeAnswerFor(tx, authority, keyed.key, 200, uncharged(recordOf(changed, host)));
      }
      return changed;
    });
    return { ...uncharged(recordOf(row, host)), ...this.#surface(authority, row, host) };
  }

  /** Part 4, Workspaces 4: stopped, and its credentials change with the workspace. */
  async moveToWorkspace(
    authority: Authority,
    id: string,
    workspaceId: string | null,
  ): Promise<Computer> {
    const host = await this.seen(await this.row(authority, id));
    if (host?.status !== 'stopped') throw new Refusal('computer_not_stopped');
    const row = await changeAs(this.#database, authority, 'member', async (tx) => {
      const locked = await store.lockComputer(tx, authority, id);
      if (locked === undefined) throw new Refusal('computer_unknown');
      if (await store.isBeingChanged(tx, id)) throw new Refusal('computer_busy');
      if (locked.active) throw new Refusal('computer_not_stopped');
      if ((locked.secrets?.bound ?? []).length > 0) throw new Refusal('computer_has_secrets');
      if (workspaceId !== null && !(await seesWorkspace(tx, authority, workspaceId))) {
        throw new Refusal('workspace_unknown');
      }
      return store.moveComputerToWorkspace(tx, id, workspaceId);
    });
    return recordOf(row, host);
  }

  /** Null for any workspace, '' for none; one the key cannot see is 404. */
  async #workspaceWished(authority: Authority, wished: string | undefined): Promise<string | null> {
    if (wished === undefined) return null;
    if (wished.trim() !== wished || wished === '') {
      throw new Refusal('query_refused', {
        problem: '`workspace_id` must be a workspace’s id or `unassigned`.',
      });
    }
    if (wished === 'unassigned') {
      if (authority.workspaceId !== null) throw new Refusal('workspace_unknown');
      return '';
    }
    if (!(await seesWorkspace(this.#database, authority, wished))) {
      throw new Refusal('workspace_unknown');
    }
    return wished;
  }
}
