// The changes of computers that their hosts carry out: what each needs, and what it takes from the quota.

import { computerName, defaultResolution } from '@cubicle/contract/computer-fields.ts';
import { Refusal } from '@cubicle/contract/errors.ts';
import type { ComputerStatus } from '@cubicle/contract/computer-fields.ts';
import type { BindingWish } from '@cubicle/contract/secret-bindings.ts';
import { holdImage } from '../db/builds.ts';
import * as store from '../db/computers.ts';
import type { Runner } from '../db/database.ts';
import { beginDelivery } from '../db/secret-bindings.ts';
import { seesWorkspace } from '../db/workspaces.ts';
import type { Fleet } from '../hosts/fleet.ts';
import type { Authority } from './authority.ts';
import { sizes } from './catalog.ts';
import { requireBuilt, statusOf } from './computer-record.ts';
import type { Computers } from './computers.ts';
import type { Keyed } from './idempotency.ts';
import type { CommandWish, Lifecycle } from './lifecycle.ts';
import { admit, type Shape } from './quota.ts';
import { bind } from './secret-bindings.ts';
import { secretsAgainstSuspend, secretsForRestart, secretsForStart } from './secret-starts.ts';
import { newId } from './secrets.ts';
import type { Settled } from './settle.ts';
import { publishedBySystem } from './system-templates.ts';
import { type Choice, type Image, type TemplateChoice, transferOf } from './template-choice.ts';

export interface CreateWish {
  readonly name?: string | undefined;
  readonly size?: string | undefined;
  readonly template?: string | undefined;
  readonly template_transfer?: string | undefined;
  readonly cpu?: number | undefined;
  readonly ram_mb?: number | undefined;
  readonly disk_gb?: number | undefined;
  readonly resolution?: string | undefined;
  readonly start?: boolean | undefined;
  readonly workspace_id?: string | undefined;
  readonly secrets?: readonly BindingWish[] | undefined;
  readonly browser_proxy?: object | null | undefined;
  readonly egress_proxy?: object | undefined;
}

export class ComputerChanges {
  readonly #lifecycle: Lifecycle;
  readonly #computers: Computers;
  readonly #fleet: Fleet;
  readonly #templates: TemplateChoice;

  constructor(lifecycle: Lifecycle, computers: Computers, fleet: Fleet, templates: TemplateChoice) {
    this.#lifecycle = lifecycle;
    this.#computers = computers;
    this.#fleet = fleet;
    this.#templates = templates;
  }

  async create(authority: Authority, wish: CreateWish, keyed?: Keyed): Promise<Settled> {
    const { choice, shape } = await this.#shapeWished(authority, wish);
    const template = choice.name;
    const transfer = wish.template_transfer;
    const belongs =
      wish.template !== undefined && transfer === transferOf(authority.accountId, template);
    if (transfer !== undefined && !belongs) throw new Refusal('template_transfer_unknown');
    const start = wish.start ?? true;
    const resolution = wish.resolution ?? defaultResolution;
    if ((await this.#fleet.hosts()).length === 0) throw new Refusal('engine_absent');
    const { browser_proxy: proxy } = wish;
    if (proxy || wish.egress_proxy !== undefined) throw new Refusal('proxy_unsupported');
    const image = await this.#templates.imageOf(authority, choice, proxy !== null);
    const { secrets = [] } = wish;
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const workspaceId = await workspaceWished(tx, authority, wish.workspace_id);
      await admit(tx, authority.accountId, { keep: shape, ...(start && { run: shape }) });
      const hostId = await this.#place(tx, shape, start, image);
      const id = newId('computer');
      const name = wish.name ?? `computer-${id.slice(3, 9)}`;
      const computer = await store.insertComputer(tx, {
        id,
        account_id: authority.accountId,
        workspace_id: workspaceId,
        host_id: hostId,
        name,
        template,
        desktop: desktopOf(image),
        ...shape,
        resolution,
        active: start,
        build_source: null,
        build_id: image.build?.id ?? null,
      });
      if (secrets.length > 0) await bind(tx, computer, secrets);
      const delivers = secrets.length > 0 && start && { delivers: await beginDelivery(tx, id) };
      const from = { template: image.template, ...(image.build && { build: image.build.id }) };
      const command = { kind: 'create', ...from, shape, resolution, name, start } as const;
      return { computer, command: { ...command, ...delivers } };
    });
  }

  async clone(
    authority: Authority,
    id: string,
    wish: { name?: string | undefined },
    keyed?: Keyed,
  ): Promise<Settled> {
    const status = await this.#status(authority, id);
    if (status === 'running') throw new Refusal('computer_running');
    requireBuilt(status);
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const source = await lockedComputer(tx, authority, id);
      if (await store.isBeingChanged(tx, id)) throw new Refusal('computer_busy');
      const shape = shapeOf(source);
      await admit(tx, authority.accountId, { keep: shape });
      if (!(await this.#fleet.fits(tx, source.host_id, 0, shape.disk_gb))) {
        throw new Refusal('host_no_room');
      }
      const name = wish.name ?? computerName.parse(`${source.name} copy`);
      const computer = await store.insertComputer(tx, {
        id: newId('computer'),
        account_id: authority.accountId,
        workspace_id: source.workspace_id,
        host_id: source.host_id,
        name,
        template: source.template,
        desktop: source.desktop,
        ...shape,
        resolution: source.resolution,
        active: false,
        build_source: id,
        build_id: source.build_id,
      });
      const { resolution } = source;
      return { computer, command: { kind: 'clone', source: id, shape, resolution, name } };
    });
  }

  async start(
    authority: Authority,
    id: string,
    resumeOnly: boolean,
    keyed?: Keyed,
  ): Promise<Settled> {
    const status = await this.#status(authority, id);
    requireBuilt(status);
    const boots = status === 'suspended' || (status === 'stopped' && !resumeOnly);
    return this.#run(authority, id, boots, keyed, async (tx, computer) => {
      const delivers = boots && (await secretsForStart(tx, computer, status));
      return { kind: 'start', resume_only: resumeOnly, ...delivers };
    });
  }

  async restart(authority: Authority, id: string, keyed?: Keyed): Promise<Settled> {
    const status = await this.#status(authority, id);
    requireBuilt(status);
    if (status === 'suspended') throw new Refusal('computer_suspended');
    return this.#run(authority, id, status === 'stopped', keyed, async (tx, computer) => ({
      kind: 'restart',
      ...(await secretsForRestart(tx, computer, status)),
    }));
  }

  async stop(authority: Authority, id: string, force: boolean, keyed?: Keyed): Promise<Settled> {
    requireBuilt(await this.#status(authority, id));
    return this.#plain(authority, id, { kind: 'stop', force }, keyed);
  }

  async suspend(authority: Authority, id: string, keyed?: Keyed): Promise<Settled> {
    const status = await this.#status(authority, id);
    requireBuilt(status);
    if (status !== 'running') throw new Refusal('computer_not_running');
    return this.#plain(authority, id, { kind: 'suspend' }, keyed, secretsAgainstSuspend);
  }

  async delete(authority: Authority, id: string, keyed?: Keyed): Promise<Settled> {
    await this.#computers.row(authority, id);
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const computer = await lockedComputer(tx, authority, id);
      await store.setComputerState(tx, id, 'deleting');
      return { computer, command: { kind: 'delete' } };
    });
  }

  async resize(
    authority: Authority,
    id: string,
    wish: Partial<Record<keyof Shape, number | undefined>>,
    keyed?: Keyed,
  ): Promise<Settled> {
    const status = await this.#status(authority, id);
    if (status === 'running') throw new Refusal('computer_running');
    requireBuilt(status);
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const computer = await lockedComputer(tx, authority, id);
      const from = shapeOf(computer);
      const shape = {
        cpu: wish.cpu ?? from.cpu,
        ram_mb: wish.ram_mb ?? from.ram_mb,
        disk_gb: wish.disk_gb ?? from.disk_gb,
      };
      if (shape.disk_gb < from.disk_gb) throw new Refusal('disk_shrinks', { disk: from.disk_gb });
      await admit(tx, authority.accountId, { change: { from, to: shape } });
      const moreDisk = shape.disk_gb - from.disk_gb;
      // Whether there is room at the moment is for the start to find out.
      if (!(await this.#fleet.suits(tx, computer.host_id, shape.ram_mb, moreDisk))) {
        const possible = (await this.#fleet.place(tx, room(shape, true))) !== undefined;
        throw new Refusal('resize_needs_move', {}, { move: { required: true, possible } });
      }
      return { computer, command: { kind: 'resize', shape } };
    });
  }

  async #run(
    authority: Authority,
    id: string,
    boots: boolean,
    keyed: Keyed | undefined,
    commandFor: (tx: Runner, computer: store.ComputerRow) => Promise<CommandWish>,
  ): Promise<Settled> {
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const computer = await lockedComputer(tx, authority, id);
      if (boots && !computer.active) {
        await admit(tx, authority.accountId, { run: shapeOf(computer) });
        if (!(await this.#fleet.fits(tx, computer.host_id, computer.ram_mb, 0))) {
          throw new Refusal('host_no_room');
        }
        await store.setComputerActive(tx, id, true);
      }
      return { computer, command: await commandFor(tx, computer) };
    });
  }

  async #plain(
    authority: Authority,
    id: string,
    command: CommandWish,
    keyed: Keyed | undefined,
    against: (computer: store.ComputerRow) => Refusal | undefined = () => undefined,
  ): Promise<Settled> {
    return this.#lifecycle.change(authority, keyed, async (tx) => {
      const computer = await lockedComputer(tx, authority, id);
      const refusal = against(computer);
      if (refusal !== undefined) throw refusal;
      return { computer, command };
    });
  }

  async #shapeWished(
    authority: Authority,
    wish: CreateWish,
  ): Promise<{ choice: Choice; shape: Shape }> {
    const { size: named, template: wished, template_transfer, cpu, ram_mb, disk_gb } = wish;
    if (named !== undefined) {
      const own = [wished, template_transfer, cpu, ram_mb, disk_gb];
      if (own.some((given) => given !== undefined)) throw new Refusal('size_and_shape');
      const size = sizes.find(({ id }) => id === named);
      if (size === undefined) throw new Refusal('size_unknown');
      const choice = await this.#templates.of(authority, size.template);
      return { choice, shape: shapeFrom(size) };
    }
    const choice = await this.#templates.of(authority, wished);
    const { template } = choice;
    return {
      choice,
      shape: {
        cpu: cpu ?? template.cpu,
        ram_mb: ram_mb ?? template.ram_mb,
        // The template's disk is a floor: less is raised, and charged raised.
        disk_gb: Math.max(disk_gb ?? 0, template.disk_gb),
      },
    };
  }

  async #status(authority: Authority, id: string): Promise<ComputerStatus> {
    const row = await this.#computers.row(authority, id);
    return statusOf(row, await this.#computers.seen(row));
  }

  async #place(tx: Runner, shape: Shape, start: boolean, { build }: Image): Promise<string> {
    if (build !== undefined) {
      if (!(await holdImage(tx, build.id))) throw new Refusal('template_image_absent');
      const { ramMb, diskGb } = room(shape, start);
      if (await this.#fleet.fits(tx, build.hostId, ramMb, diskGb)) return build.hostId;
      throw new Refusal('host_no_room');
    }
    const hostId = await this.#fleet.place(tx, room(shape, start));
    if (hostId === undefined) throw new Refusal('host_no_room');
    return hostId;
  }
}

/** The desktop of the image, whatever a document laid upon it says. */
function desktopOf({ template }: Image): string | null {
  return publishedBySystem(template, undefined)?.template.desktop ?? null;
}

function room(shape: Shape, running: boolean): { ramMb: number; diskGb: number } {
  return { ramMb: running ? shape.ram_mb : 0, diskGb: shape.disk_gb };
}

function shapeOf(row: store.ComputerRow): Shape {
  return { cpu: row.cpu, ram_mb: row.ram_mb, disk_gb: row.disk_gb };
}

async function lockedComputer(
  tx: Runner,
  authority: Authority,
  id: string,
): Promise<store.ComputerRow> {
  const row = await store.lockComputer(tx, authority, id);
  if (row === undefined) throw new Refusal('computer_unknown');
  return row;
}

function shapeFrom(size: Shape): Shape {
  return { cpu: size.cpu, ram_mb: size.ram_mb, disk_gb: size.disk_gb };
}

async function workspaceWished(
  tx: Runner,
  authority: Authority,
  wished: string | undefined,
): Promise<string | null> {
  if (wished === undefined) return authority.workspaceId;
  if (!(await seesWorkspace(tx, authority, wished))) throw new Refusal('workspace_unknown');
  return wished;
}
