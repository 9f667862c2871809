/** What is done to single instances of Incus: each step looks at what is so, then acts on it. */
import { access } from 'node:fs/promises';
import { type Context, EngineError, type InstanceSpec, type InstanceStatus } from '../engine.ts';
import type { IncusClient } from './client.ts';
import { firewallStands } from './firewall.ts';
import { freezeAhead, giveBackMemory, thawLeftover } from './freezer.ts';
import {
  type IncusInstance,
  isOurs,
  isWhole,
  politeSeconds,
  statusOf,
  wanted,
  whole,
} from './instance.ts';
import { linkName, type Place } from './place.ts';
import { restoreFirewall } from './preseed.ts';
import { run } from './run.ts';

interface State {
  readonly pid: number;
  readonly memory?: { readonly usage: number } | null;
}

interface OperationList {
  readonly running?: readonly {
    readonly id: string;
    readonly resources?: Readonly<Record<string, readonly string[]>> | null;
  }[];
}

export const pathOf = (id: string): string => `/1.0/instances/${encodeURIComponent(id)}`;

export class Instances {
  readonly #client: IncusClient;
  readonly #place: Place;

  constructor(client: IncusClient, place: Place) {
    this.#client = client;
    this.#place = place;
  }

  async all(context: Context): Promise<IncusInstance[]> {
    const all = await this.#client.get<IncusInstance[]>(context, '/1.0/instances?recursion=1');
    return all.filter(isOurs);
  }

  async find(context: Context, id: string): Promise<IncusInstance | undefined> {
    const found = await this.#client.find<IncusInstance>(context, pathOf(id));
    if (found === undefined || isOurs(found)) return found;
    throw new EngineError('failed', `Incus has an instance ${id} that is not Cubicle's`);
  }

  async existing(context: Context, id: string): Promise<IncusInstance> {
    const found = await this.find(context, id);
    if (found === undefined) throw new EngineError('absent', `no instance ${id}`);
    return found;
  }

  /** One that can be acted on. */
  async sound(context: Context, id: string): Promise<IncusInstance> {
    const found = await this.existing(context, id);
    const status = statusOf(found);
    if (status === 'broken' || status === 'unfinished') {
      throw new EngineError('failed', `${id} is ${status}`);
    }
    return found;
  }

  /**
   * Incus calls a guest running once more while it clears up after the guest's own shutdown, for about
   * half a second. Such a one counts as busy, to be looked at again. `pid` is that of a running guest's
   * first process, and 0 for others.
   */
  async settled(context: Context, id: string): Promise<{ status: InstanceStatus; pid: number }> {
    const status = statusOf(await this.sound(context, id));
    if (status !== 'running') return { status, pid: 0 };
    const { pid } = await this.#state(context, id);
    if (!(pid > 0)) throw new EngineError('busy', `${id} is just ending`);
    return { status, pid };
  }

  async memoryInUse(context: Context, id: string): Promise<number> {
    return (await this.#state(context, id)).memory?.usage ?? 0;
  }

  /**
   * An instance carries its mark only when everything about it is so; one without is what is left of a
   * call that was cut off, and makes room for the repeated one.
   */
  async make(context: Context, spec: InstanceSpec, source: Record<string, unknown>): Promise<void> {
    const left = await this.find(context, spec.id);
    if (left !== undefined) await this.discard(context, left);
    const { config, ...rest } = wanted(this.#place, spec);
    await this.#client.change(context, 'POST', '/1.0/instances', {
      name: spec.id,
      type: 'container',
      source,
      // Said, since a copy takes over what is not: its source was whole.
      config: { ...config, [whole]: 'false' },
      ...rest,
    });
    const made = await this.existing(context, spec.id);
    // A copy also takes over its source's labels and folders. What Incus keeps there itself must stay.
    const kept = Object.entries(made.config).filter(([key]) => /^(volatile|image)\./.test(key));
    await this.#client.change(context, 'PUT', pathOf(spec.id), {
      config: { ...Object.fromEntries(kept), ...config, [whole]: 'true' },
      ...rest,
    });
  }

  async boot(context: Context, id: string): Promise<void> {
    if (!(await firewallStands(this.#place))) {
      await restoreFirewall(context, this.#client, this.#place);
    }
    // A guest that died while Incus was away leaves its interface, whose name the next start needs.
    const link = linkName(this.#place, id);
    const left = await access(`/sys/class/net/${link}`).catch(() => 'none');
    if (left !== 'none') {
      if (await this.#awaitOthers(context, id)) throw new EngineError('busy', `${id} was starting`);
      await run('ip', ['link', 'delete', link]).catch(() => {});
    }
    await this.#act(context, id, 'start');
  }

  /** Does nothing to one that is stopped. */
  async halt(context: Context, id: string, force: boolean): Promise<void> {
    const status = statusOf(await this.sound(context, id));
    if (status === 'stopped') return;
    if (!force && status === 'running') {
      try {
        return await this.#act(context, id, 'stop', { timeout: politeSeconds });
      } catch (error) {
        // It would not in time. Everything else is no reason to pull the plug.
        if (!(error instanceof EngineError) || !/shutting down|deadline/.test(error.message)) {
          throw error;
        }
      }
    }
    await this.#act(context, id, 'stop', { force: true });
  }

  async freeze(context: Context, id: string, pid: number): Promise<void> {
    await freezeAhead(pid);
    await this.#act(context, id, 'freeze');
    // Nobody waits for it.
    void giveBackMemory(pid);
  }

  async wake(context: Context, id: string, pid: number): Promise<void> {
    if (pid > 0) await thawLeftover(pid);
    else await this.#act(context, id, 'unfreeze');
  }

  async discard(context: Context, found: IncusInstance): Promise<void> {
    if (!isWhole(found)) await this.#awaitOthers(context, found.name);
    // Incus deletes nothing that runs, and cannot say of a broken one whether it does.
    if (found.status_code !== 102) {
      await this.#act(context, found.name, 'stop', { force: true }).catch((error: unknown) => {
        if (!(error instanceof EngineError)) throw error;
      });
    }
    await this.#client.remove(context, pathOf(found.name));
  }

  async #act(
    context: Context,
    id: string,
    action: 'start' | 'stop' | 'freeze' | 'unfreeze',
    options: { timeout?: number; force?: boolean } = {},
  ): Promise<void> {
    await this.#client.change(context, 'PUT', `${pathOf(id)}/state`, { action, ...options });
  }

  async #state(context: Context, id: string): Promise<State> {
    return await this.#client.get<State>(context, `${pathOf(id)}/state`);
  }

  /**
   * Waits for changes that Incus is still at: of a host before us, which was killed and did not see their
   * end. Returns whether there were any.
   */
  async #awaitOthers(context: Context, id: string): Promise<boolean> {
    const path = '/1.0/operations?recursion=1';
    const { running = [] } = await this.#client.get<OperationList>(context, path);
    const others = running.filter((operation) =>
      (operation.resources?.['instances'] ?? []).includes(pathOf(id)),
    );
    for (const { id: operation } of others) {
      await this.#client.finish(context, `/1.0/operations/${operation}`).catch(() => {});
    }
    return others.length > 0;
  }
}
