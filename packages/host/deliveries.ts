// Brings secrets into computers. A host holds their values from the call that brings them until the guest has
// them, in memory alone.

import { setTimeout as pause } from 'node:timers/promises';
import type { DeliveredSecret, HostDelivery, HostOutcome } from '@cubicle/contract/host/api.ts';
import type { SecretsBody } from '@cubicle/contract/guest/messages.ts';
import type { Census } from './census.ts';
import type { Context, Engine } from './engine/engine.ts';
import type { GuestLinks } from './guest/links.ts';
import type { Resident } from './roster.ts';
import type { SocketEnd } from './sockets/kind.ts';

/** A guest boots in a second, and on a machine that is out of breath in many. */
const bootMs = 45_000;
/** One that runs answers at once, or is asked again later. */
const runningMs = 10_000;
const againMs = 100;

export class Deliveries {
  readonly #engine: Engine;
  readonly #links: GuestLinks;
  readonly #log: (problem: unknown) => void;

  constructor(engine: Engine, links: GuestLinks, log: (problem: unknown) => void) {
    this.#engine = engine;
    this.#links = links;
    this.#log = log;
  }

  /** Into one that has just been booted, as soon as its agent is there. Whether the guest has them. */
  async atBoot(context: Context, resident: Resident, delivery: HostDelivery): Promise<boolean> {
    return this.#within(context, bootMs, resident, delivery);
  }

  /** Into one that has been running. */
  async later(context: Context, resident: Resident, delivery: HostDelivery): Promise<boolean> {
    return this.#within(context, runningMs, resident, delivery);
  }

  /** The last delivery that a running computer holds; undefined while nobody knows. */
  held({ instance, delivered }: Resident): number | undefined {
    return this.#links.secrets(instance) ?? delivered;
  }

  async #within(
    { signal }: Context,
    ms: number,
    resident: Resident,
    delivery: HostDelivery,
  ): Promise<boolean> {
    const context = { signal: AbortSignal.any([signal, AbortSignal.timeout(ms)]) };
    try {
      const taken = await this.#hand(context, resident.instance, delivery);
      if (taken) resident.delivered = delivery.serial;
      return taken;
    } catch (error) {
      if (!context.signal.aborted) this.#log(error);
      return false;
    }
  }

  async #hand(context: Context, instance: string, delivery: HostDelivery): Promise<boolean> {
    const body = bodyOf(delivery);
    for (;;) {
      if (this.#engine.deliver !== undefined && !this.#links.connected(instance)) {
        await this.#engine.deliver(context, instance, delivery.serial);
        return true;
      }
      await this.#links.whenConnected(context, instance);
      const result = await this.#links.deliver(context, instance, body);
      if (result.ok) return true;
      // It was heard and refused. Otherwise the agent went away under it: that of the boot before, for one.
      if (result.failure === 'unsupported') return false;
      await pause(againMs, undefined, context);
    }
  }
}

function bodyOf({ serial, replaces, secrets }: HostDelivery): SecretsBody {
  // By entries, since a variable may have the name of something that every object has.
  const named = (kind: 'env' | 'file') =>
    Object.fromEntries(
      secrets.flatMap((secret) => (secret[kind] === null ? [] : [[secret[kind], secret.value]])),
    ) as Record<string, string>;
  return { serial, replaces, env: named('env'), files: named('file') };
}

function withoutValue({ secret_id, revision_id, env, file }: DeliveredSecret): DeliveredSecret {
  return { secret_id, revision_id, env, file };
}

export interface BootParts {
  readonly engine: Engine;
  readonly census: Census;
  readonly deliveries: Deliveries;
  /** What was about its running is over. */
  readonly ended: (computer: string, end: SocketEnd) => void;
}

interface Given {
  readonly computer: string;
  readonly resident: Resident;
  /** Nothing where the control plane could not have it. */
  readonly delivery: HostDelivery | undefined;
}

/** Nobody reaches the computer before its guest has everything, and without that it does not run. */
export async function bootWithSecrets(
  context: Context,
  { engine, census, deliveries, ended }: BootParts,
  { computer, resident, delivery }: Given,
  boot: () => Promise<HostOutcome>,
): Promise<HostOutcome> {
  resident.awaitsSecrets = true;
  try {
    if (delivery !== undefined) {
      const outcome = await boot();
      if (outcome.outcome !== 'done' || outcome.status !== 'running') return outcome;
      if (await deliveries.atBoot(context, resident, delivery)) {
        return { ...outcome, delivered: delivery.secrets.map(withoutValue) };
      }
    }
    await engine.stop(context, resident.instance, true);
    census.note(resident, 'stopped');
    ended(computer, 'stopped');
    return { outcome: 'undelivered', message: 'Its secrets could not be delivered.' };
  } finally {
    resident.awaitsSecrets = false;
  }
}
