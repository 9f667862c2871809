/** Gives a fresh Incus what computers need: a pool for their disks, a bridge, and silence. */
import { statfs } from 'node:fs/promises';
import { type Context, EngineError } from '../engine.ts';
import type { IncusClient } from './client.ts';
import { clearCutOffPool } from './cut-off-pool.ts';
import { deadProxy } from './daemon.ts';
import { Away } from './failure.ts';
import { applyFirewall } from './firewall.ts';
import type { Place } from './place.ts';
import { endNameServers } from './processes.ts';
import { run } from './run.ts';
import { chooseSubnet, outwardMtu } from './subnet.ts';

const gib = 2 ** 30;
/** Below this a pool holds a base image and hardly a computer. */
const smallestPoolGib = 4;

export interface PreseedOptions {
  readonly say: (line: string) => void;
  /** The pool takes four fifths of the free disk, and no more than this. It fills as it is used. */
  readonly largestPoolGib?: number | undefined;
  /** As the operator has it, whatever is free. */
  readonly poolGib?: number | undefined;
  /** False for an Incus of somebody else's, whose settings are not ours to change. */
  readonly own: boolean;
}

/** What is there already stays as it is, so a restart changes nothing. Takes half a second the first time. */
export async function preseed(
  context: Context,
  client: IncusClient,
  place: Place,
  options: PreseedOptions,
): Promise<void> {
  if (options.own) {
    await client.change(context, 'PATCH', '/1.0', {
      config: {
        'core.proxy_http': deadProxy,
        'core.proxy_https': deadProxy,
        'images.auto_update_interval': '0',
      },
    });
  }
  await ensurePool(context, client, place, options);
  const address = await ensureBridge(context, client, place);
  await applyFirewall(place, address);
}

interface Entity {
  readonly status: string;
  readonly config: Record<string, string>;
  /** What would be lost with it: instances and images. */
  readonly used_by?: readonly string[] | null;
}

/** Incus has it and could not bring it up. A restart tries again at once, Incus itself after a minute. */
export class Unavailable extends Away {}

/** Undefined also for one whose making was cut off before anything used it; that is then removed. */
async function findWhole(
  context: Context,
  client: IncusClient,
  path: string,
): Promise<Entity | undefined> {
  const found = await client.find<Entity>(context, path);
  if (found === undefined || found.status === 'Created') return found;
  if ((found.used_by ?? []).length > 0) throw new Unavailable(`${path} is ${found.status}`);
  await client.remove(context, path);
  return undefined;
}

async function ensurePool(
  context: Context,
  client: IncusClient,
  place: Place,
  { say, largestPoolGib = Number.POSITIVE_INFINITY, poolGib, own }: PreseedOptions,
): Promise<void> {
  if ((await findWhole(context, client, `/1.0/storage-pools/${place.pool}`)) !== undefined) return;
  if (own) await clearCutOffPool(place);
  const { bavail, bsize } = await statfs(place.folder);
  const size = poolGib ?? Math.min(Math.floor((bavail * bsize * 0.8) / gib), largestPoolGib);
  if (size < smallestPoolGib) {
    throw new EngineError(
      'room',
      `The disk of ${place.folder} has too little room for computers: ${size} GiB of at least ${smallestPoolGib}.`,
    );
  }
  const make = (driver: string, config: Record<string, string>) =>
    client.change(context, 'POST', '/1.0/storage-pools', { name: place.pool, driver, config });
  try {
    await make('btrfs', { size: `${size}GiB` });
  } catch (error) {
    // Of one that is away nothing is known: it is asked again.
    const refused = error instanceof EngineError && error.kind === 'failed';
    if (!refused || error instanceof Away) throw error;
    say(
      `No btrfs pool can be made here (${error.message}); computers get plain folders, without disk limits and with slow copies.`,
    );
    await make('dir', {});
  }
}

/** Returns the bridge's own address. */
async function ensureBridge(context: Context, client: IncusClient, place: Place): Promise<string> {
  const path = `/1.0/networks/${place.bridge}`;
  const found = await findWhole(context, client, path);
  const subnet = found?.config['ipv4.address'] ?? (await chooseSubnet(place.digest));
  if (found === undefined) {
    // One that was made and not yet noted when its Incus was killed; its name server, which may have come up
    // after that, holds the address.
    await endNameServers(place);
    await run('ip', ['link', 'delete', place.bridge]).catch(() => {});
    const mtu = await outwardMtu();
    await client.change(context, 'POST', '/1.0/networks', {
      name: place.bridge,
      type: 'bridge',
      config: {
        'ipv4.address': subnet,
        'ipv4.nat': 'true',
        'ipv6.address': 'none',
        // Guests cannot look each other up.
        'dns.mode': 'none',
        // Nor the names that the host keeps for itself.
        'raw.dnsmasq': 'no-hosts',
        ...(mtu === undefined ? {} : { 'bridge.mtu': `${mtu}` }),
      },
    });
  }
  return subnet.split('/')[0] ?? '';
}

/** For an engine whose rules somebody has flushed. */
export async function restoreFirewall(
  context: Context,
  client: IncusClient,
  place: Place,
): Promise<void> {
  const { config } = await client.get<Entity>(context, `/1.0/networks/${place.bridge}`);
  await applyFirewall(place, (config['ipv4.address'] ?? '').split('/')[0] ?? '');
}
