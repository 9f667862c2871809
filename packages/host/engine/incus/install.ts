/** Makes sure that the programs of the engine are on the machine, from the machine's own archive. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { apt } from './apt.ts';
import { offers, readSources, sisterSuite } from './apt-sources.ts';
import { missingPrograms, programs } from './programs.ts';

/** Not programs, but without them incusd does not start. */
const fromSameSuite = ['incus-base', 'incus-client', 'libcowsql0', 'libraft0'];

const backportsFile = '/etc/apt/sources.list.d/cubicle-backports.sources';

export type Ability = { can: true } | { can: false; reason: string };

/** Whether computers can run here, after an installation if one is needed; else why not. */
export async function canRunEngine(): Promise<Ability> {
  const no = (reason: string): Ability => ({ can: false, reason });
  if (process.platform !== 'linux') {
    return no(`Computers need Linux, and this machine runs ${process.platform}.`);
  }
  if (process.geteuid?.() !== 0) {
    return no('Computers need root to run their containers; start Cubicle as root.');
  }
  // Two rights that a plain container lacks: mounting, and networks of one's own.
  const lacking = await lackingRights();
  if (lacking !== '') return no(`Root lacks ${lacking} here, as in a confined container.`);
  if (!(await allowsUserNamespaces())) {
    return no('This kernel allows no user namespaces, which unprivileged containers are made of.');
  }
  if ((await missingPrograms()).length === 0) return { can: true };
  const system = await operatingSystem();
  if (packagesFor(system) === undefined) {
    return no(
      `Incus is not installed, and Cubicle can install it on Debian 12 and later and Ubuntu 24.04 and later only, not on ${system.name}; install incus, dnsmasq, btrfs-progs, nftables and squashfs-tools by hand.`,
    );
  }
  return { can: true };
}

/** Returns at once when everything is there. */
export async function installEngine(say: (line: string) => void): Promise<void> {
  const missing = await missingPrograms();
  if (missing.length === 0) return;
  const system = await operatingSystem();
  const packages = packagesFor(system);
  if (packages === undefined) throw new Error(`No packages of Incus are known for ${system.name}.`);
  say(`Installing Incus, which runs the computers (missing: ${missing.join(', ')})`);
  const addedSource = await provideBackports(system);
  const updateFailure = await apt(['update'], say).catch(String);
  try {
    await apt(['install', '--yes', '--no-install-recommends', ...packages], say);
  } catch (cause) {
    if (addedSource) await rm(backportsFile, { force: true });
    const sentences = [`Incus could not be installed: ${String(cause)}`, updateFailure ?? ''];
    throw new Error(sentences.join(' ').trim(), { cause });
  }
  const still = await missingPrograms();
  if (still.length > 0) throw new Error(`Installed, but not found: ${still.join(', ')}`);
}

/** CAP_SYS_ADMIN is bit 21, CAP_NET_ADMIN bit 12. */
async function lackingRights(): Promise<string> {
  const status = await readFile('/proc/self/status', 'utf8');
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0'}`);
  const needed = { CAP_SYS_ADMIN: 21n, CAP_NET_ADMIN: 12n };
  const missing = Object.entries(needed).filter(([, bit]) => ((effective >> bit) & 1n) === 0n);
  return missing.map(([name]) => name).join(' and ');
}

async function allowsUserNamespaces(): Promise<boolean> {
  const most = await readFile('/proc/sys/user/max_user_namespaces', 'utf8').catch(() => '0');
  return Number(most) > 0;
}

interface System {
  readonly id: string;
  readonly version: number;
  readonly codename: string;
  readonly name: string;
}

async function operatingSystem(): Promise<System> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)`, 'm').exec(text)?.[1] ?? '';
  return {
    id: field('ID'),
    version: Number(field('VERSION_ID')),
    codename: field('VERSION_CODENAME'),
    name: field('PRETTY_NAME') || 'this system',
  };
}

const needsBackports = ({ id, version }: System): boolean => id === 'debian' && version === 12;

function packagesFor(system: System): string[] | undefined {
  const supported =
    (system.id === 'debian' && system.version >= 12) ||
    (system.id === 'ubuntu' && system.version >= 24.04);
  if (!supported) return undefined;
  const others = Object.values(programs).filter((name) => !fromSameSuite.includes(name));
  const suffix = needsBackports(system) ? `/${system.codename}-backports` : '';
  return [...fromSameSuite.map((name) => `${name}${suffix}`), ...others];
}

/** True when it added a source; the archive and its key are those that the machine trusts already. */
async function provideBackports(system: System): Promise<boolean> {
  if (!needsBackports(system)) return false;
  const suite = `${system.codename}-backports`;
  const sources = await readSources();
  if (sources.some((source) => offers(source, suite))) return false;
  const archive = sources.find((source) => offers(source, system.codename));
  if (archive === undefined) {
    throw new Error(`No apt source for ${system.codename} is configured, so none for ${suite}.`);
  }
  await writeFile(backportsFile, sisterSuite(archive, suite));
  return true;
}
