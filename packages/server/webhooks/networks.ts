// Which addresses webhooks may be sent to: those that everybody on the internet can reach, and the networks
// that the operator opened. Everything that is not known to be public is refused.

import { isIP, isIPv4 } from 'node:net';

/** An address as its 4 or 16 bytes. */
type Bytes = readonly number[];

export interface Network {
  readonly bytes: Bytes;
  readonly length: number;
}

/** `10.0.0.0/8`, `fd00::/8`, or one address. */
export function readNetwork(text: string): Network | undefined {
  const [address = '', length, ...rest] = text.split('/');
  const bytes = bytesOf(address);
  if (bytes === undefined || rest.length > 0) return undefined;
  const most = bytes.length * 8;
  if (length === undefined) return { bytes, length: most };
  if (!/^\d{1,3}$/.test(length) || Number(length) > most) return undefined;
  return { bytes, length: Number(length) };
}

/** Of IPv4 everything is public but these (IANA, special-purpose address registry). */
const notPublic4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carriers' own
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local, and the clouds' metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // name servers' sinks
  '192.52.193.0/24', // relays
  '192.88.99.0/24', // relays from 6to4
  '192.168.0.0/16', // private
  '192.175.48.0/24', // name servers' sinks
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
  '168.63.129.16/32', // a cloud's metadata at a public address
].map(known);

/** Of IPv6 nothing is public but this. */
const public6 = known('2000::/3');
const notPublic6 = [
  '2001::/23', // Teredo, benchmarks, protocol assignments
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which leads to any IPv4 address
  '3fff::/20', // documentation
].map(known);
/** IPv4 as networks without it reach it: as public as the address within. */
const nat64 = known('64:ff9b::/96');

export function isPublic(address: string): boolean {
  const bytes = bytesOf(address);
  return bytes !== undefined && publicBytes(bytes);
}

function publicBytes(bytes: Bytes): boolean {
  if (bytes.length === 4) return !notPublic4.some((network) => holds(network, bytes));
  if (holds(nat64, bytes)) return publicBytes(bytes.slice(12));
  return holds(public6, bytes) && !notPublic6.some((network) => holds(network, bytes));
}

/** Public, or in a network that the operator opened. */
export function mayReach(address: string, opened: readonly Network[]): boolean {
  const bytes = bytesOf(address);
  if (bytes === undefined) return false;
  return publicBytes(bytes) || opened.some((network) => holds(network, bytes));
}

function holds({ bytes: prefix, length }: Network, bytes: Bytes): boolean {
  if (prefix.length !== bytes.length) return false;
  return prefix.every((part, n) => {
    const bits = Math.min(8, Math.max(0, length - n * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (part & mask) === ((bytes[n] as number) & mask);
  });
}

function known(text: string): Network {
  const network = readNetwork(text);
  if (network === undefined) throw new Error(`${text} is no network`);
  return network;
}

/** Nothing for what is no address, or names a zone of this machine's. */
function bytesOf(address: string): Bytes | undefined {
  if (isIPv4(address)) return address.split('.').map(Number);
  if (isIP(address) !== 6 || address.includes('%')) return undefined;
  const [head = '', tail] = expanded(address).split('::');
  const [front, back] = [groups(head), groups(tail ?? '')];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - front.length - back.length });
  return [...front, ...zeros.map(() => 0), ...back].flatMap((group) => [group >> 8, group & 0xff]);
}

/** With an IPv4 address at its end written as two groups. */
function expanded(address: string): string {
  const cut = address.lastIndexOf(':') + 1;
  const last = address.slice(cut);
  if (!isIPv4(last)) return address;
  const [a = 0, b = 0, c = 0, d = 0] = last.split('.').map(Number);
  return `${address.slice(0, cut)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
