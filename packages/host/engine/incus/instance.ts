/** Translates between the engine's instances and Incus's: configuration, devices, status. */
import type { Instance, InstanceSpec, InstanceStatus, Mount, Shape } from '../engine.ts';
import { linkName, type Place } from './place.ts';

export interface IncusInstance {
  readonly name: string;
  readonly status_code: number;
  readonly config: Readonly<Record<string, string>>;
  readonly devices: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What Incus takes in a POST or PUT. */
export interface Wanted {
  readonly config: Record<string, string>;
  readonly devices: Record<string, Record<string, string>>;
  readonly profiles: readonly string[];
}

/** Set to `true` last: an instance without it was cut off while it was made. */
export const whole = 'user.cubicle.whole';
// Keys of our own. A guest cannot read them: its door to Incus is shut by security.guestapi.
const ours = 'user.cubicle.computer';
const labelPrefix = 'user.cubicle.label.';

/** What a guest has to shut down in; a desktop takes 1 s. */
export const politeSeconds = 20;
/** Threads count too. */
const mostProcesses = 4096;

export function wanted(place: Place, spec: InstanceSpec): Wanted {
  return {
    config: {
      ...limits(spec.shape),
      'limits.memory.swap': 'false',
      'limits.processes': `${mostProcesses}`,
      // No two computers share a uid on the host.
      'security.idmap.isolated': 'true',
      // User namespaces inside the guest, which a browser's own sandbox is made of.
      'security.nesting': 'true',
      'security.guestapi': 'false',
      // The host decides what runs after a reboot.
      'boot.autostart': 'false',
      'boot.host_shutdown_timeout': `${politeSeconds}`,
      [ours]: spec.id,
      ...labelConfig(spec.labels),
    },
    devices: {
      root: rootDisk(place, spec.shape),
      eth0: {
        type: 'nic',
        name: 'eth0',
        network: place.bridge,
        host_name: linkName(place, spec.id),
        // Neither its neighbours nor anybody's address but its own.
        'security.port_isolation': 'true',
        'security.mac_filtering': 'true',
        'security.ipv4_filtering': 'true',
        'security.ipv6_filtering': 'true',
      },
      ...Object.fromEntries(spec.mounts.map((mount) => [`mount-${mount.name}`, folder(mount)])),
    },
    // Nothing comes from a profile: what a computer is stands with the computer.
    profiles: [],
  };
}

/**
 * Not shifted: the guest's root stays nobody in the host's folder, and cannot leave files of root's
 * there. So what a guest reads must be readable by all, and what it writes to writable by all.
 */
function folder({ hostPath, guestPath, readOnly }: Mount): Record<string, string> {
  return {
    type: 'disk',
    source: hostPath,
    path: guestPath,
    ...(readOnly ? { readonly: 'true' } : {}),
  };
}

export function limits({ cpu, ramMb }: Shape): Record<string, string> {
  return { 'limits.cpu': `${cpu}`, 'limits.memory': `${ramMb}MiB` };
}

export function rootDisk(place: Place, { diskGb }: Shape): Record<string, string> {
  return { type: 'disk', path: '/', pool: place.pool, size: `${diskGb}GiB` };
}

export function labelConfig(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]) => [labelPrefix + name, value]),
  );
}

export const isOurs = ({ name, config }: IncusInstance): boolean => config[ours] === name;

export const isWhole = ({ config }: IncusInstance): boolean => config[whole] === 'true';

export function toInstance(found: IncusInstance): Instance {
  const { config, devices } = found;
  const labels = Object.entries(config)
    .filter(([key]) => key.startsWith(labelPrefix))
    .map(([key, value]) => [key.slice(labelPrefix.length), value]);
  return {
    id: found.name,
    status: statusOf(found),
    shape: {
      cpu: Number(config['limits.cpu']),
      ramMb: Number.parseInt(config['limits.memory'] ?? '', 10),
      diskGb: Number.parseInt(devices['root']?.['size'] ?? '', 10),
    },
    labels: Object.fromEntries(labels),
  };
}

/** Incus's codes; those for a change under way count as what was before it. */
const statuses: Record<number, InstanceStatus> = {
  101: 'running', // started
  102: 'stopped',
  103: 'running',
  106: 'stopped', // starting
  107: 'running', // stopping
  108: 'running', // aborting
  109: 'running', // freezing
  110: 'frozen',
  111: 'frozen', // thawed, just now
  113: 'running', // ready, as a guest says of itself
};

export function statusOf(found: IncusInstance): InstanceStatus {
  return isWhole(found) ? (statuses[found.status_code] ?? 'broken') : 'unfinished';
}
