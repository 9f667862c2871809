/** Chooses the private network of the guests: one that the machine has no other use for. */
import { readFile } from 'node:fs/promises';
import { run } from './run.ts';

/** 1,021 guests; a /24 would end at 253. */
const prefixLength = 22;
const subnets = 2 ** (prefixLength - 8);

interface Range {
  readonly first: number;
  readonly last: number;
}

/** The bridge's address with its prefix length, such as `10.87.12.1/22`. */
export async function chooseSubnet(digest: string): Promise<string> {
  const taken = await rangesInUse();
  const start = Number.parseInt(digest.slice(0, 8), 16);
  for (let step = 0; step < subnets; step += 1) {
    const first = (10 * 2 ** 24 + ((start + step) % subnets) * 2 ** (32 - prefixLength)) >>> 0;
    const last = first + 2 ** (32 - prefixLength) - 1;
    if (taken.some((range) => range.first <= last && first <= range.last)) continue;
    return `${dotted(first + 1)}/${prefixLength}`;
  }
  throw new Error('Every part of 10.0.0.0/8 is routed on this machine; computers need a free /22.');
}

/** Routes of every table, the host's own addresses among them, and the name servers it asks. */
async function rangesInUse(): Promise<Range[]> {
  const text = await run('ip', ['-json', '-4', 'route', 'show', 'table', 'all']);
  const routes = JSON.parse(text) as { dst: string; gateway?: string }[];
  const resolver = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  const servers = [...resolver.matchAll(/^nameserver\s+(\d[\d.]+)/gm)].map(([, server]) => server);
  return [...routes.flatMap(({ dst, gateway }) => [dst, gateway]), ...servers]
    .map(rangeOf)
    .filter((range) => range !== undefined);
}

/** The default route, and one for all of 10.0.0.0/8 or more, says nothing about a single part of it. */
function rangeOf(text = ''): Range | undefined {
  const found = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(text);
  if (found === null) return undefined;
  const bytes = found.slice(1, 5).map(Number);
  const length = Number(found[5] ?? 32);
  if (length <= 8) return undefined;
  const size = 2 ** (32 - length);
  const first = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  return { first, last: first + size - 1 };
}

const dotted = (address: number): string =>
  [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');

/** The smallest packet size on the way out; guests must not send larger ones. */
export async function outwardMtu(): Promise<number | undefined> {
  const routes = JSON.parse(await run('ip', ['-json', '-4', 'route', 'show', 'default'])) as {
    dev?: string;
  }[];
  const device = routes[0]?.dev;
  if (device === undefined) return undefined;
  const mtu = Number(await readFile(`/sys/class/net/${device}/mtu`, 'utf8').catch(() => ''));
  return mtu >= 1280 && mtu < 1500 ? mtu : undefined;
}
