// The settings: environment variables, checked at start with one sentence per mistake.

import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { basePath } from '@cubicle/contract/routes.ts';
import { type LogLevel, logLevels } from './log.ts';
import { type Network, readNetwork } from './webhooks/networks.ts';
import { usualWaits } from './webhooks/schedule.ts';

export interface Settings {
  readonly host: string;
  /** 0 lets the system pick one. */
  readonly port: number;
  readonly dataDir: string;
  /** The origin under which callers reach the service; undefined: the address it listens on. */
  readonly publicUrl: string | undefined;
  /** An external PostgreSQL; undefined: the embedded one. */
  readonly databaseUrl: string | undefined;
  readonly log: LogLevel;
  /** What runs computers on this machine; `none` is the control plane alone. */
  readonly engine: EngineKind;
  /** How many computers wait booted for a create; 0 for none. */
  readonly pool: number;
  /** What computers' disks may take together, in GB; undefined: four fifths of what is free. */
  readonly diskGb: number | undefined;
  /** Where images are kept for every checkout and data folder of this user. */
  readonly cacheDir: string;
  /** The file of the keys that stored secrets are sealed with. */
  readonly keyring: string;
  /** Networks that webhooks may be sent to besides public addresses. */
  readonly webhookAllow: readonly Network[];
  /** A PEM file of an authority that receivers' certificates may come from besides the public ones. */
  readonly webhookCa: string | undefined;
  /** Milliseconds after attempts 1 to 7 of a delivery. */
  readonly webhookWaits: readonly number[];
}

const engines = ['incus', 'simulated', 'none'] as const;
export type EngineKind = (typeof engines)[number];

/** Each is a booted desktop that does nothing. */
const mostWaiting = 20;
/** One computer's, and the image's. */
const leastDiskGb = 12;

class SettingsMistake extends Error {}

export function readSettings(env: NodeJS.ProcessEnv, checkout: string): Settings {
  const mistakes: string[] = [];
  // An empty variable is an unset one.
  const read = (name: string) => env[name]?.trim() || undefined;
  const check = (good: boolean, sentence: string) => {
    if (!good) mistakes.push(sentence);
  };

  const port = read('CUBICLE_PORT') ?? '8080';
  check(
    /^\d{1,5}$/.test(port) && Number(port) <= 65_535,
    `CUBICLE_PORT must be a port from 0 to 65535 (0 picks one), not "${port}".`,
  );
  const host = read('CUBICLE_HOST') ?? '127.0.0.1';
  check(
    /^[\w.:-]+$/.test(host),
    `CUBICLE_HOST must be an address or a host name to listen on, not "${host}".`,
  );
  const publicUrl = read('CUBICLE_PUBLIC_URL');
  check(
    publicUrl === undefined || isOrigin(publicUrl),
    `CUBICLE_PUBLIC_URL must be an http or https address without a path, such as https://cubicle.example.com, not "${publicUrl}".`,
  );
  const databaseUrl = read('DATABASE_URL');
  check(
    databaseUrl === undefined || /^postgres(ql)?:\/\//.test(databaseUrl),
    // The value may carry a password, so it is not repeated.
    'DATABASE_URL must begin with postgres:// or postgresql://.',
  );
  const log = read('CUBICLE_LOG') ?? 'info';
  check(
    (logLevels as readonly string[]).includes(log),
    `CUBICLE_LOG must be one of ${logLevels.join(', ')}, not "${log}".`,
  );
  const engine = read('CUBICLE_ENGINE') ?? 'incus';
  check(
    (engines as readonly string[]).includes(engine),
    `CUBICLE_ENGINE must be incus or none, not "${engine}".`,
  );
  const pool = read('CUBICLE_POOL') ?? '2';
  check(
    /^\d{1,2}$/.test(pool) && Number(pool) <= mostWaiting,
    `CUBICLE_POOL must be a number of computers from 0 to ${mostWaiting}, not "${pool}".`,
  );
  const diskGb = read('CUBICLE_DISK_GB');
  check(
    diskGb === undefined || (/^\d{1,7}$/.test(diskGb) && Number(diskGb) >= leastDiskGb),
    `CUBICLE_DISK_GB must be a number of gigabytes from ${leastDiskGb}, not "${diskGb}".`,
  );
  const dataDir = resolve(checkout, read('CUBICLE_DATA') ?? '.data');
  const ca = read('CUBICLE_WEBHOOK_CA');
  const allow = (read('CUBICLE_WEBHOOK_ALLOW') ?? '').split(/[\s,]+/).filter((one) => one !== '');
  const networks = allow.map(readNetwork);
  check(
    !networks.includes(undefined),
    `CUBICLE_WEBHOOK_ALLOW must be a list of networks such as 10.0.0.0/8,fd00::/8, not "${allow.join()}".`,
  );
  const waits = read('CUBICLE_WEBHOOK_WAITS');
  check(
    waits === undefined || /^\d{1,6}(\.\d{1,3})?(,\d{1,6}(\.\d{1,3})?){6}$/.test(waits),
    `CUBICLE_WEBHOOK_WAITS must be seven numbers of seconds, separated by commas, not "${waits}".`,
  );
  if (mistakes.length > 0) throw new SettingsMistake(mistakes.join('\n'));

  return {
    host,
    port: Number(port),
    dataDir,
    publicUrl: publicUrl?.replace(/\/$/, ''),
    databaseUrl,
    log: log as LogLevel,
    engine: engine as EngineKind,
    pool: Number(pool),
    diskGb: diskGb === undefined ? undefined : Number(diskGb),
    cacheDir: resolve(read('CUBICLE_CACHE') ?? join(homedir(), '.cache', 'cubicle')),
    keyring: resolve(checkout, read('CUBICLE_KEYRING') ?? join(dataDir, 'keyring.json')),
    webhookAllow: networks.filter((network) => network !== undefined),
    webhookCa: ca === undefined ? undefined : resolve(checkout, ca),
    webhookWaits: waits?.split(',').map((seconds) => Number(seconds) * 1_000) ?? usualWaits,
  };
}

/** {base_url} of the specification. */
export function baseUrl(settings: Settings, port: number): string {
  return `${settings.publicUrl ?? `http://${reachable(settings.host)}:${port}`}${basePath}`;
}

/** An address to connect to: a wildcard is for listening only. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
}
