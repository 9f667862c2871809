// Names looked up without holding up anybody else: by questions to the name servers, which can be many at
// once and given up. (The system's own look-up blocks one of four threads for as long as it takes.)

import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** All addresses of a name; none when it has none or could not be looked up. */
export type Lookup = (host: string, signal: AbortSignal) => Promise<string[]>;

const askMs = 2_000;
const asks = 2;

export const lookUp: Lookup = async (host, signal) => {
  const name = host.replace(/\.$/, '');
  // RFC 6761: what these are is not for name servers to say.
  if (/(^|\.)localhost$/.test(name)) return ['127.0.0.1', '::1'];
  if (/(^|\.)invalid$/.test(name)) return [];
  const named = await inHostsFile(name);
  if (named.length > 0) return named;
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: askMs, tries: asks });
  const giveUp = () => resolver.cancel();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const none = () => [];
    const both = [resolver.resolve4(name).catch(none), resolver.resolve6(name).catch(none)];
    return (await Promise.all<string[]>(both)).flat();
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
};

/** What the machine's own file says of a name. */
async function inHostsFile(name: string): Promise<string[]> {
  const text = await readFile('/etc/hosts', 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = (line.split('#')[0] ?? '').trim().split(/\s+/);
    const meant = names.some((known) => known.toLowerCase() === name);
    return meant && isIP(address) !== 0 ? [address] : [];
  });
}
