/** Owns the rules that keep guests to the internet: a table of our own beside those of Incus. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Place } from './place.ts';
import { anyDaemon } from './processes.ts';
import { run } from './run.ts';

/**
 * Everything that is not the public internet (RFC 6890): this network, private, shared (CGNAT),
 * loopback, link-local with the clouds' metadata services, benchmarking, multicast, reserved.
 */
const closedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/**
 * A drop is final whatever the tables of others accept; an accept here ends only our own chain. Of the
 * host a guest reaches DHCP and DNS on the bridge and nothing else, on none of its addresses. IPv6 has
 * no address on the bridge and passes nowhere. Nobody opens a connection to a guest through the host.
 * An Incus ACL would not do: it cannot name «this machine's addresses», which change.
 */
function rules({ table, bridge }: Place, address: string): string {
  return `
table inet ${table}
delete table inet ${table}
table inet ${table} {
  set closed {
    type ipv4_addr
    flags interval
    elements = { ${closedRanges.join(', ')} }
  }
  chain input {
    type filter hook input priority -5; policy accept;
    iifname != "${bridge}" accept
    ct state established,related accept
    ip version 4 udp sport 68 udp dport 67 accept
    ip daddr ${address} udp dport 53 accept
    ip daddr ${address} tcp dport 53 accept
    drop
  }
  chain forward {
    type filter hook forward priority -5; policy accept;
    iifname "${bridge}" meta nfproto ipv6 drop
    iifname "${bridge}" ip daddr @closed drop
    oifname "${bridge}" ct state established,related accept
    oifname "${bridge}" drop
  }
}
`;
}

/** In one step: there is no moment without rules. `address` is the bridge's own. */
export async function applyFirewall(place: Place, address: string): Promise<void> {
  await run('nft', ['--file', '-'], rules(place, address));
}

/** Somebody's `nft flush ruleset` takes our table with everything else. Takes 5 ms. */
export async function firewallStands(place: Place): Promise<boolean> {
  const tables = await run('nft', ['list', 'tables', 'inet']);
  return tables.split('\n').includes(`table inet ${place.table}`);
}

export async function removeFirewall(place: Place): Promise<void> {
  if (await firewallStands(place)) await run('nft', ['delete', 'table', 'inet', place.table]);
}

/**
 * Chains that a killed Incus left in the tables that all daemons of the machine share: those of our
 * bridge and of our guests' interfaces. A table goes when nothing is in it and nobody is there who could be
 * about to fill it.
 */
export async function removeStaleChains(place: Place): Promise<void> {
  for (const family of ['inet', 'bridge']) {
    const list = () => run('nft', ['list', 'table', family, 'incus']).catch(() => '');
    const chains = (await list()).split(/^\tchain /m).slice(1);
    const ours = chains.filter((text) => text.includes(`"${place.links}`));
    const named = chains.filter((text) => text.split(' ')[0]?.endsWith(`.${place.bridge}`));
    for (const text of new Set([...ours, ...named])) {
      const name = text.split(' ')[0] ?? '';
      await run('nft', ['delete', 'chain', family, 'incus', name]).catch(() => {});
    }
    if (/^table \w+ incus \{\s*\}\s*$/.test(await list()) && !(await anyDaemon())) {
      await run('nft', ['delete', 'table', family, 'incus']).catch(() => {});
    }
  }
}

/**
 * Whoever is still there after this was left by an Incus that was killed while it looked. A machine may stand
 * still for a while.
 */
const probeMs = 3_000;

/** Incus tries out nftables with a table that lives for milliseconds and says nothing of whose it is. */
export async function removeStaleProbes(): Promise<void> {
  const list = async () =>
    (await run('nft', ['list', 'tables'])).split('\n').filter((line) => / incus_test_/.test(line));
  const probes = await list();
  if (probes.length === 0) return;
  await pause(probeMs);
  for (const probe of (await list()).filter((line) => probes.includes(line))) {
    await run('nft', ['delete', ...probe.split(' ')]).catch(() => {});
  }
}
